"""Fine-tunes a BERT of transformers on questions in SQuAD's format, with DeepSpeed's interface.

    torchrun --nproc-per-node 2 examples/python/squad_deepspeed.py --model MODEL \
        --train_file train-v1.1.json --predict_file dev-v1.1.json --output_dir OUT \
        --deepspeed --deepspeed_config deepspeed_onebitadam_bsz96_config.json

It makes the calls of DeepSpeed's own script for SQuAD, in their order. Only the import of
`deepspeed` differs from a script for DeepSpeed.
"""

import argparse
import collections
import json
import os
import random
import re
import string

import numpy as np
import torch
import torch.distributed as dist
import transformers
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import onebit.deepspeed as deepspeed

NO_DECAY = ("bias", "LayerNorm.bias", "LayerNorm.weight")
LONGEST_ANSWER = 30  # in tokens


def get_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--model", required=True, help="a folder of transformers")
    parser.add_argument("--train_file", required=True)
    parser.add_argument("--predict_file")
    parser.add_argument("--output_dir", required=True, help="checkpoints and predictions.json")
    parser.add_argument("--max_seq_length", type=int, default=384)
    parser.add_argument("--doc_stride", type=int, default=128)
    parser.add_argument("--num_train_epochs", type=int, default=2)
    parser.add_argument("--warmup_proportion", type=float, default=0.1)
    parser.add_argument("--max_steps", type=int, default=10**9, help="end after this step")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--local_rank", type=int, default=-1, help="given by DeepSpeed's launcher")
    parser.add_argument("--load_training_checkpoint", help="a folder of checkpoints")
    parser.add_argument("--load_checkpoint_id", help="a tag in it. Without one: the latest")
    parser = deepspeed.add_config_arguments(parser)
    return parser.parse_args()


def read_squad(path):
    """Returns [(id, question, context, answers, start of the first answer)]."""
    with open(path, encoding="utf-8") as file:
        articles = json.load(file)["data"]
    return [(entry["id"], entry["question"], paragraph["context"],
             [answer["text"] for answer in entry["answers"]], entry["answers"][0]["answer_start"])
            for article in articles for paragraph in article["paragraphs"]
            for entry in paragraph["qas"]]


def encode(examples, tokenizer, args):
    """Returns the windows of all examples, with the example of each."""
    windows = tokenizer(
        [question for _, question, _, _, _ in examples],
        [context for _, _, context, _, _ in examples], max_length=args.max_seq_length,
        truncation="only_second", stride=args.doc_stride, padding="max_length",
        return_overflowing_tokens=True, return_offsets_mapping=True, return_token_type_ids=True)
    return windows, windows["overflow_to_sample_mapping"]


def positions_of(windows, window, example):
    """Returns the first and the last token of the answer, or None if it is not in the window."""
    _, _, _, answers, begin = example
    end = begin + len(answers[0])
    tokens = [(token, place) for token, (place, part) in enumerate(
        zip(windows["offset_mapping"][window], windows.sequence_ids(window))) if part == 1]
    first = [token for token, place in tokens if place[0] <= begin < place[1]]
    last = [token for token, place in tokens if place[0] < end <= place[1]]
    return (first[0], last[-1]) if first and last else None


def make_data(examples, tokenizer, args):
    windows, owners = encode(examples, tokenizer, args)
    kept, places = [], []
    for window, owner in enumerate(owners):
        place = positions_of(windows, window, examples[owner])
        if place is not None:
            kept.append(window)
            places.append(place)
    columns = [torch.tensor([windows[name][window] for window in kept])
               for name in ("input_ids", "attention_mask", "token_type_ids")]
    starts, ends = torch.tensor(places).unbind(1)
    return TensorDataset(*columns, starts, ends)


def warmup_linear(part, warmup):
    return part / warmup if part < warmup else max(0.0, 1.0 - part)


def parameter_groups(model):
    named = [(name, parameter) for name, parameter in model.named_parameters()
             if "pooler" not in name]
    return [
        {"params": [p for n, p in named if not any(word in n for word in NO_DECAY)],
         "weight_decay": 0.01},
        {"params": [p for n, p in named if any(word in n for word in NO_DECAY)],
         "weight_decay": 0.0},
    ]


def train(args, engine, optimizer, data, start):
    """Returns the losses of the steps, from step `start` on."""
    accumulation = args.gradient_accumulation_steps
    sampler = DistributedSampler(data, seed=args.seed)
    loader = DataLoader(data, sampler=sampler, batch_size=args.train_batch_size,
                        drop_last=True)
    steps_per_epoch = len(loader) // accumulation
    if steps_per_epoch == 0:
        raise SystemExit(f"{len(data)} windows are less than one step of {args.train_file}'s batch: "
                         "give a smaller train_batch_size in the config")
    total = steps_per_epoch * args.num_train_epochs
    losses, global_step = [], start
    engine.train()
    for epoch in range(start // steps_per_epoch, args.num_train_epochs):
        sampler.set_epoch(epoch)
        loss_of_step = 0.0
        for micro, batch in enumerate(loader):
            if not start <= epoch * steps_per_epoch + micro // accumulation < total:
                continue  # done before the checkpoint, or the rest of an epoch
            if micro // accumulation >= steps_per_epoch or global_step >= args.max_steps:
                break
            # Dropout draws the same numbers after a resume.
            torch.manual_seed(args.seed + 10_000 * (epoch * len(loader) + micro) + dist.get_rank())
            batch = tuple(column.to(engine.device) for column in batch)
            ids, mask, segments, starts, ends = batch
            loss = engine(input_ids=ids, attention_mask=mask, token_type_ids=segments,
                          start_positions=starts, end_positions=ends)[0]
            loss_of_step += loss.item() / accumulation
            engine.backward(loss)
            if engine.is_gradient_accumulation_boundary():
                rate = args.learning_rate * warmup_linear(global_step / total, args.warmup_proportion)
                for group in optimizer.param_groups:
                    group["lr"] = rate
                engine.step()
                global_step += 1
                losses.append(loss_of_step)
                if dist.get_rank() == 0 and global_step % args.print_steps == 0:
                    scale = optimizer.cur_scale if hasattr(optimizer, "cur_scale") else 1
                    print(f"step={global_step}/{total} lr={rate:.3g} loss={loss_of_step:.6f} "
                          f"scale={scale:g}", flush=True)
                loss_of_step = 0.0
            else:
                engine.step()
    return losses


@torch.no_grad()
def predict(engine, examples, tokenizer, args):
    """Returns {id: answer}: of every question the best span of all its windows."""
    windows, owners = encode(examples, tokenizer, args)
    best = {}
    engine.eval()
    for begin in range(0, len(owners), 16):
        rows = range(begin, min(begin + 16, len(owners)))
        ids, mask, segments = (torch.tensor([windows[name][row] for row in rows])
                               for name in ("input_ids", "attention_mask", "token_type_ids"))
        output = engine(input_ids=ids, attention_mask=mask, token_type_ids=segments)
        for row, starts, ends in zip(rows, output.start_logits, output.end_logits):
            allowed = torch.tensor([part == 1 for part in windows.sequence_ids(row)])
            sums = starts.float()[:, None] + ends.float()[None, :]
            spans = torch.ones_like(sums).triu().tril(LONGEST_ANSWER - 1).bool()
            sums[~(spans & allowed[:, None] & allowed[None, :])] = -torch.inf
            place = int(sums.argmax())
            first, last = divmod(place, sums.shape[1])
            offsets = windows["offset_mapping"][row]
            key, _, context, _, _ = examples[owners[row]]
            answer = float(sums.flatten()[place]), context[offsets[first][0]:offsets[last][1]]
            best[key] = max(best.get(key, (-np.inf, "")), answer)
    return {key: text for key, (_, text) in best.items()}


def words_of(text):
    text = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", text).split()


def score(examples, predictions):
    """Returns SQuAD's exact match and F1, in percent."""
    exact = f1 = 0.0
    for key, _, _, answers, _ in examples:
        said = words_of(predictions.get(key, ""))
        exact += max(said == words_of(answer) for answer in answers)
        shares = []
        for right in map(words_of, answers):
            common = sum((collections.Counter(said) & collections.Counter(right)).values())
            shares.append(2 * common / (len(said) + len(right)) if common else 0.0)
        f1 += max(shares)
    return {"exact_match": 100 * exact / len(examples), "f1": 100 * f1 / len(examples)}


def main():
    args = get_arguments()
    deepspeed.init_distributed(dist_backend="nccl")
    args.local_rank = int(os.environ["LOCAL_RANK"])
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    tokenizer = transformers.AutoTokenizer.from_pretrained(args.model)
    model = transformers.AutoModelForQuestionAnswering.from_pretrained(args.model)
    engine, optimizer, _, _ = deepspeed.initialize(
        args=args, model=model, model_parameters=parameter_groups(model), dist_init_required=True)
    args.train_batch_size = engine.train_micro_batch_size_per_gpu()
    args.gradient_accumulation_steps = engine.gradient_accumulation_steps()
    args.fp16 = engine.fp16_enabled()
    args.print_steps = engine.steps_per_print()
    args.learning_rate = engine.get_lr()[0]
    args.wall_clock_breakdown = engine.wall_clock_breakdown()
    start = 0
    if args.load_training_checkpoint is not None:
        _, client = engine.load_checkpoint(args.load_training_checkpoint, args.load_checkpoint_id)
        start = client["last_global_step"]
    data = make_data(read_squad(args.train_file), tokenizer, args)
    losses = train(args, engine, optimizer, data, start)
    last = start + len(losses)
    engine.save_checkpoint(args.output_dir, f"step{last}", {"last_global_step": last})
    if args.predict_file and dist.get_rank() == 0:
        examples = read_squad(args.predict_file)
        predictions = predict(engine, examples, tokenizer, args)
        with open(os.path.join(args.output_dir, "predictions.json"), "w", encoding="utf-8") as file:
            json.dump(predictions, file, indent=1)
        print(json.dumps({**score(examples, predictions), "steps": last,
                          "loss": float(np.mean(losses[-10:])) if losses else None}), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
