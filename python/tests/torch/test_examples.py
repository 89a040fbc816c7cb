"""The programs of examples/python that need torch, and the proof that one of them is DeepSpeed's."""

import json
import os
import pathlib
import random
import re
import shutil
import socket
import subprocess
import sys

import pytest
import torch

transformers = pytest.importorskip("transformers")

ROOT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples/python"
STUB = pathlib.Path(__file__).parent / "stub"
WORDS = ("cat dog bird fish tree river stone house road hill sees finds likes follows the a old "
         "small who what where now near here there is").split()
CONFIG = {
    "train_batch_size": 16, "train_micro_batch_size_per_gpu": 4, "steps_per_print": 1,
    "optimizer": {"type": "OnebitAdam",
                  "params": {"lr": 3e-3, "freeze_step": 4, "weight_decay": 0.0,
                             "bias_correction": False, "cuda_aware": False,
                             "comm_backend_name": "nccl"}},
    "gradient_clipping": 1.0,
}
# What DeepSpeed's script for SQuAD calls, in the order in which it calls each for the first time,
# and the checkpoints of its script for pre-training.
CALLS = ["add_config_arguments", "init_distributed", "initialize",
         "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "fp16_enabled",
         "steps_per_print", "get_lr", "wall_clock_breakdown", "train", "forward", "backward",
         "is_gradient_accumulation_boundary", "step", "save_checkpoint", "eval"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run_ranks(count, *words, folder=None, environment=None):
    """Runs a script on ranks of torchrun, and returns what it prints."""
    done = subprocess.run(
        [sys.executable, "-B", "-m", "torch.distributed.run", f"--nproc-per-node={count}",
         f"--master-port={free_port()}", *map(str, words)], text=True, capture_output=True,
        check=False, cwd=folder,
        env=os.environ | {"OMP_NUM_THREADS": "1"} | (environment or {}))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def question(number):
    draw = random.Random(number)
    words = draw.choices(WORDS[:16], k=20)
    answer = draw.choice(WORDS[:10])
    words[draw.randrange(2, 18)] = f"likes {answer}"
    context = " ".join(words)
    return {"context": context, "qas": [{
        "id": str(number), "question": "who likes what",
        "answers": [{"text": answer, "answer_start": context.index(f"likes {answer}") + 6}]}]}


@pytest.fixture(scope="module")
def squad(tmp_path_factory):
    """A small random BERT, questions and a config."""
    folder = tmp_path_factory.mktemp("squad")
    (folder / "vocab.txt").write_text(
        "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]) + "\n")
    torch.manual_seed(0)
    transformers.BertForQuestionAnswering(transformers.BertConfig(
        vocab_size=5 + len(WORDS), hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=64)).save_pretrained(folder / "model")
    transformers.BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder / "model")
    for name, numbers in (("train", range(60)), ("dev", range(60, 80))):
        paragraphs = [question(number) for number in numbers]
        (folder / f"{name}.json").write_text(json.dumps(
            {"version": "1.1", "data": [{"title": name, "paragraphs": paragraphs}]}))
    (folder / "config.json").write_text(json.dumps(CONFIG))
    return folder


def fine_tune(squad, output, *words, script=(EXAMPLES / "squad_deepspeed.py",), ranks=2, **options):
    said = run_ranks(ranks, *script, "--model", squad / "model", "--train_file", squad / "train.json",
                     "--predict_file", squad / "dev.json", "--output_dir", output,
                     "--max_seq_length", 40, "--doc_stride", 16, "--num_train_epochs", 4,
                     "--deepspeed", "--deepspeed_config", squad / "config.json", *words, **options)
    steps = re.findall(r"step=(\d+)/12 lr=(\S+) loss=(\S+)", said)
    return steps, json.loads(said.splitlines()[-1])


def values_of(folder):
    return torch.load(folder / "mp_rank_00_model_states.pt", weights_only=False)["module"]


def test_squad_deepspeed_trains_saves_and_resumes_exactly(squad):
    steps, result = fine_tune(squad, squad / "whole")
    assert len(steps) == 12 and result["steps"] == 12
    assert float(steps[-1][2]) < float(steps[0][2])
    assert 0 <= result["exact_match"] <= result["f1"] <= 100
    assert len(json.loads((squad / "whole/predictions.json").read_text())) == 20
    fine_tune(squad, squad / "parts", "--max_steps", 7)
    rest, _ = fine_tune(squad, squad / "parts", "--load_training_checkpoint", squad / "parts",
                        "--load_checkpoint_id", "step7")
    assert rest == steps[7:]
    whole, parts = values_of(squad / "whole/step12"), values_of(squad / "parts/step12")
    assert whole.keys() == parts.keys()
    assert all(torch.equal(whole[name], parts[name]) for name in whole)


@pytest.mark.parametrize("ranks", [1, 4])
def test_squad_deepspeed_goes_on_on_another_number_of_ranks(squad, ranks):
    """A step has as many samples: the micro-batches of a rank are more, or fewer."""
    folder = squad / f"others{ranks}"
    fine_tune(squad, folder, "--max_steps", 7)
    steps, result = fine_tune(squad, folder, "--load_training_checkpoint", folder,
                              "--load_checkpoint_id", "step7", ranks=ranks)
    assert [int(step) for step, _, _ in steps] == list(range(8, 13)) and result["steps"] == 12
    written = sorted(path.name for path in (folder / "step12").glob("onebit_rank_*"))
    assert written == [f"onebit_rank_{rank:04d}_optim_states.pt" for rank in range(ranks)]
    state = torch.load(folder / "step12" / written[0], weights_only=False)["optimizer"]
    assert state["onebit"]["ranks"] == ranks


def test_squad_deepspeed_needs_the_state_of_every_rank(squad):
    folder = squad / "missing"
    fine_tune(squad, folder, "--max_steps", 5)
    (folder / "step5/onebit_rank_0001_optim_states.pt").unlink()
    with pytest.raises(AssertionError, match="onebit_rank_0001_optim_states.pt: there is no such"):
        fine_tune(squad, folder, "--load_training_checkpoint", folder, ranks=1)


def test_squad_deepspeed_is_a_script_for_deepspeed(squad):
    text = (EXAMPLES / "squad_deepspeed.py").read_text()
    assert text.count("import onebit.deepspeed as deepspeed") == text.count("onebit.") == 1
    script = squad / "theirs.py"
    script.write_text(text.replace("import onebit.deepspeed as deepspeed", "import deepspeed"))
    calls = squad / "calls.json"
    steps, _ = fine_tune(squad, squad / "theirs", script=(script,), environment={
        "DEEPSPEED_CALLS": str(calls),
        "PYTHONPATH": os.pathsep.join([str(STUB), os.environ.get("PYTHONPATH", "")])})
    assert len(steps) == 12
    recorded = json.loads(calls.read_text())
    assert list(dict.fromkeys(recorded)) == CALLS
    passes = recorded.count("backward")
    assert passes == recorded.count("step") == 2 * len(steps)


def test_an_unchanged_script_runs_under_the_module(squad):
    script = squad / "unchanged.py"
    script.write_text((EXAMPLES / "squad_deepspeed.py").read_text().replace(
        "import onebit.deepspeed as deepspeed", "import deepspeed"))
    steps, _ = fine_tune(squad, squad / "unchanged", "--max_steps", 2,
                         script=("-m", "onebit.deepspeed", script))
    assert len(steps) == 2


def test_own_module():
    said = run_ranks(2, EXAMPLES / "own_module.py", ROOT / "CONTRIBUTING.md", 60)
    losses = [float(loss) for loss in re.findall(r"loss (\S+)", said)]
    assert len(losses) == 6 and losses[-1] < losses[0]
    assert "warmup" in said and "compressed" in said


def test_trainer_continues_exactly(squad):
    pytest.importorskip("accelerate")
    draw = random.Random(3)
    rows = [draw.choices(WORDS[:16], k=12) for _ in range(256)]
    (squad / "rows.tsv").write_text("".join(
        f"{'yes' if 'cat' in row else 'no'}\t{' '.join(row)}\n" for row in rows))

    def train(output):
        said = run_ranks(2, EXAMPLES / "trainer.py", squad / "model", squad / "rows.tsv",
                         squad / output)
        values = transformers.AutoModelForSequenceClassification.from_pretrained(squad / output)
        return said, values.state_dict()

    said, whole = train("trainer")
    assert all(f"rank {rank}: 48 updates, compressed" in said for rank in range(2))
    first = transformers.AutoModel.from_pretrained(squad / "model").state_dict()
    assert not any(torch.equal(whole[f"bert.{name}"], first[name])
                   for name in first if "query" in name)
    shutil.copytree(squad / "trainer", squad / "half")
    for folder in (squad / "half").glob("checkpoint-*"):
        if folder.name != "checkpoint-20":
            shutil.rmtree(folder)
    said, rest = train("half")
    assert "48 updates" in said
    assert all(torch.equal(whole[name], rest[name]) for name in whole)
