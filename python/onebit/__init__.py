"""Encoders trained over slow networks: the models, the tools and the optimizers of onebit.

Models that are trained already, from their folders (numpy arrays out):

    >>> import onebit
    >>> vectors = onebit.Encoder("model/").encode(["a text", "another one"])

1-bit Adam for any model of PyTorch: see ``onebit.torch``.
"""

from onebit import _core
from onebit._core import Error, InternalError, NetworkError, PeerError
from onebit.models import Classifier, Encoder, FillMask, QuestionAnswering, Tagger

__all__ = [
    "Classifier",
    "Encoder",
    "Error",
    "FillMask",
    "InternalError",
    "NetworkError",
    "PeerError",
    "QuestionAnswering",
    "Tagger",
]
