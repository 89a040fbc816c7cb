"""Encoders trained over slow networks: the models, the tools and the optimizers of onebit.

Models that are trained already, from their folders (numpy arrays out):

    >>> import onebit
    >>> vectors = onebit.Encoder("model/").encode(["a text", "another one"])

Training from a recipe, and its data:

    >>> onebit.prepare("text/", "store/", vocab_size=30522)
    >>> onebit.train("recipe.json", data="store/", output="run/")

1-bit Adam for any model of PyTorch: see ``onebit.torch``. What the package has and can use on this
machine: ``python -m onebit.info``.
"""

from onebit import _core
from onebit._core import Error, InternalError, NetworkError, PeerError
from onebit.data import Batches, TokenStore
from onebit.log import set_log
from onebit.models import Classifier, Encoder, FillMask, QuestionAnswering, Tagger
from onebit.tokenizer import Tokenizer
from onebit.tools import convert, doctor, plan, prepare
from onebit.training import Callbacks, TrainingResult, train

__version__: str = _core.version

Error.__doc__ = "A folder, a file, a setting or a text is wrong: the message says what, and how to mend it."
PeerError.__doc__ = "Another rank has failed: the message is that rank's."
NetworkError.__doc__ = "A transfer between ranks has failed."
InternalError.__doc__ = "A defect of onebit: do not use the object again."

__all__ = [
    "Batches",
    "Callbacks",
    "Classifier",
    "Encoder",
    "Error",
    "FillMask",
    "InternalError",
    "NetworkError",
    "PeerError",
    "QuestionAnswering",
    "Tagger",
    "TokenStore",
    "Tokenizer",
    "TrainingResult",
    "convert",
    "doctor",
    "plan",
    "prepare",
    "set_log",
    "train",
]
