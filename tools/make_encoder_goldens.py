#!/usr/bin/env python3
"""Writes tests/model/golden/families for the tests of the encoders' families: of each family and
head the outputs, gradients and three AdamW steps of the class in transformers, in double precision.

    pip install torch transformers numpy
    tools/make_encoder_goldens.py tests/model/golden/families

Weights are not stored: both sides compute them from the name that onebit has for a tensor, as
tools/make_model_goldens.py does. NeoBERT is not part of transformers, so that its formulas stand
here. A tensor's gradient is stored as its largest entry, its norm, its product with a pseudo-random
vector, and some entries.
"""

import argparse
import json
import pathlib
import re

import numpy as np
import torch
import transformers

from make_model_goldens import hashed

LENGTHS = [17, 1, 150, 64, 33]
SIZES = dict(vocab_size=101, hidden_size=48, num_hidden_layers=4, num_attention_heads=4,
             intermediate_size=64)
BERT = dict(SIZES, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
            max_position_embeddings=256, attn_implementation="eager")
HEADS = ["encoder", "words", "sequence", "tokens", "span"]
CLASSES = dict(encoder="Model", words="ForMaskedLM", sequence="ForSequenceClassification",
               tokens="ForTokenClassification", span="ForQuestionAnswering")
LABELS = dict(encoder=2, words=2, sequence=3, tokens=5, span=2)
STEPS, SAMPLES = 3, 8
ADAMW = dict(lr=1e-3, betas=(0.9, 0.999), eps=1e-4, weight_decay=0.01)

LAYER = r"encoder\.layer\.(\d+)\."
OURS = r"bert.encoder.layer.\1."
BERT_NAMES = {r"((embeddings|encoder|embeddings_project|pooler)\..*)": r"bert.\1"}
ROBERTA_HEADS = {r"lm_head\.bias": "cls.predictions.bias",
                 # The tied matrix, where a class has its head before its encoder.
                 r"lm_head\.decoder\.weight": "bert.embeddings.word_embeddings.weight",
                 r"lm_head\.dense\.(.*)": r"cls.predictions.transform.dense.\1",
                 r"lm_head\.layer_norm\.(.*)": r"cls.predictions.transform.LayerNorm.\1",
                 r"lm_head\.decoder\.bias": "cls.predictions.bias",
                 r"classifier\.dense\.(.*)": r"bert.pooler.dense.\1",
                 r"classifier\.out_proj\.(.*)": r"classifier.\1"}
LABEL_HEADS = {r"((classifier|qa_outputs)\..*)": r"\1"}
ROTARY_NAMES = {r"layers\.(\d+)\.self_attn\.q_proj\.(.*)": OURS + r"attention.self.query.\2",
                r"layers\.(\d+)\.self_attn\.k_proj\.(.*)": OURS + r"attention.self.key.\2",
                r"layers\.(\d+)\.self_attn\.v_proj\.(.*)": OURS + r"attention.self.value.\2",
                r"layers\.(\d+)\.self_attn\.o_proj\.(.*)": OURS + r"attention.output.dense.\2",
                r"layers\.(\d+)\.post_attention_layernorm\.(.*)":
                    OURS + r"attention.output.LayerNorm.\2",
                r"layers\.(\d+)\.mlp\.gate_proj\.(.*)": OURS + r"intermediate.dense.\2",
                r"layers\.(\d+)\.mlp\.up_proj\.(.*)": OURS + r"intermediate.dense.\2",
                r"layers\.(\d+)\.mlp\.down_proj\.(.*)": OURS + r"output.dense.\2",
                r"layers\.(\d+)\.post_mlp_layernorm\.(.*)": OURS + r"output.LayerNorm.\2",
                r"cls\.predictions\.transform\.layer_norm\.(.*)":
                    r"cls.predictions.transform.LayerNorm.\1",
                r"(cls\.predictions\..*)": r"\1"}
# By family: the beginning of its classes' names, its config, and its names of tensors. Several
# names of onebit for one tensor are its equal parts by rows.
ROBERTA = dict(BERT, max_position_embeddings=258, type_vocab_size=1, layer_norm_eps=1e-5,
               pad_token_id=1)
ROBERTA_NAMES = {**BERT_NAMES, **ROBERTA_HEADS, **LABEL_HEADS}
FAMILIES = dict(
    roberta=("Roberta", ROBERTA, ROBERTA_NAMES),
    # Other sizes, since these three have RoBERTa's class.
    xlm_roberta=("XLMRoberta", dict(ROBERTA, num_attention_heads=6), ROBERTA_NAMES),
    camembert=("Camembert", dict(ROBERTA, intermediate_size=80), ROBERTA_NAMES),
    roberta_prelayernorm=("RobertaPreLayerNorm", dict(ROBERTA, num_attention_heads=2), {
        LAYER + r"attention\.LayerNorm\.(.*)": OURS + r"PreAttentionLayerNorm.\2",
        LAYER + r"intermediate\.LayerNorm\.(.*)": OURS + r"PostAttentionLayerNorm.\2",
        r"LayerNorm\.(.*)": r"bert.encoder.FinalLayerNorm.\1", **ROBERTA_NAMES}),
    distilbert=("DistilBert", dict(
        vocab_size=101, dim=48, n_layers=4, n_heads=4, hidden_dim=64, dropout=0.0,
        attention_dropout=0.0, seq_classif_dropout=0.0, qa_dropout=0.0,
        max_position_embeddings=256, attn_implementation="eager"), {
            r"transformer\.layer\.(\d+)\.attention\.q_lin\.(.*)": OURS + r"attention.self.query.\2",
            r"transformer\.layer\.(\d+)\.attention\.k_lin\.(.*)": OURS + r"attention.self.key.\2",
            r"transformer\.layer\.(\d+)\.attention\.v_lin\.(.*)": OURS + r"attention.self.value.\2",
            r"transformer\.layer\.(\d+)\.attention\.out_lin\.(.*)":
                OURS + r"attention.output.dense.\2",
            r"transformer\.layer\.(\d+)\.sa_layer_norm\.(.*)":
                OURS + r"attention.output.LayerNorm.\2",
            r"transformer\.layer\.(\d+)\.ffn\.lin1\.(.*)": OURS + r"intermediate.dense.\2",
            r"transformer\.layer\.(\d+)\.ffn\.lin2\.(.*)": OURS + r"output.dense.\2",
            r"transformer\.layer\.(\d+)\.output_layer_norm\.(.*)": OURS + r"output.LayerNorm.\2",
            r"vocab_transform\.(.*)": r"cls.predictions.transform.dense.\1",
            r"vocab_layer_norm\.(.*)": r"cls.predictions.transform.LayerNorm.\1",
            r"vocab_projector\.bias": "cls.predictions.bias",
            r"pre_classifier\.(.*)": r"bert.pooler.dense.\1", **BERT_NAMES, **LABEL_HEADS}),
    electra=("Electra", dict(BERT, embedding_size=32), {
        r"generator_predictions\.dense\.(.*)": r"cls.predictions.transform.dense.\1",
        r"generator_predictions\.LayerNorm\.(.*)": r"cls.predictions.transform.LayerNorm.\1",
        r"generator_lm_head\.bias": "cls.predictions.bias",
        **BERT_NAMES, **ROBERTA_HEADS, **LABEL_HEADS}),
    mpnet=("MPNet", dict(BERT, max_position_embeddings=258, layer_norm_eps=1e-5), {
        LAYER + r"attention\.attn\.q\.(.*)": OURS + r"attention.self.query.\2",
        LAYER + r"attention\.attn\.k\.(.*)": OURS + r"attention.self.key.\2",
        LAYER + r"attention\.attn\.v\.(.*)": OURS + r"attention.self.value.\2",
        LAYER + r"attention\.attn\.o\.(.*)": OURS + r"attention.output.dense.\2",
        LAYER + r"attention\.LayerNorm\.(.*)": OURS + r"attention.output.LayerNorm.\2",
        **BERT_NAMES, **ROBERTA_HEADS, **LABEL_HEADS}),
    nomic_bert=("NomicBert", BERT, {**ROTARY_NAMES, **BERT_NAMES, **LABEL_HEADS}),
    gte=("Gte", dict(BERT, type_vocab_size=1), {
        **ROTARY_NAMES, **ROBERTA_HEADS, **BERT_NAMES, **LABEL_HEADS}),
    modernbert=("ModernBert", dict(
        SIZES, max_position_embeddings=256, local_attention=32, pad_token_id=1, bos_token_id=0,
        eos_token_id=2, cls_token_id=0, sep_token_id=2, attn_implementation="sdpa"), {
            r"embeddings\.tok_embeddings\.weight": "bert.embeddings.word_embeddings.weight",
            r"embeddings\.norm\.(.*)": r"bert.embeddings.LayerNorm.\1",
            r"layers\.(\d+)\.attn\.Wqkv\.(.*)": [OURS + rf"attention.self.{part}.\2"
                                                for part in ("query", "key", "value")],
            r"layers\.(\d+)\.attn\.Wo\.(.*)": OURS + r"attention.output.dense.\2",
            r"layers\.(\d+)\.attn_norm\.(.*)": OURS + r"PreAttentionLayerNorm.\2",
            r"layers\.(\d+)\.mlp_norm\.(.*)": OURS + r"PostAttentionLayerNorm.\2",
            r"layers\.(\d+)\.mlp\.Wi\.(.*)": OURS + r"intermediate.dense.\2",
            r"layers\.(\d+)\.mlp\.Wo\.(.*)": OURS + r"output.dense.\2",
            r"final_norm\.(.*)": r"bert.encoder.FinalLayerNorm.\1",
            r"decoder\.bias": "cls.predictions.bias"}),
    neobert=None)


class NeoBert(torch.nn.Module):
    """With onebit's names, and in rotary positions with the halves of a head as pairs."""

    def __init__(self, head):
        super().__init__()
        width, wide = SIZES["hidden_size"], SIZES["intermediate_size"]
        shapes = {"bert.embeddings.word_embeddings.weight": (101, width),
                  "bert.encoder.FinalLayerNorm.weight": (width,)}
        for i in range(SIZES["num_hidden_layers"]):
            layer = f"bert.encoder.layer.{i}."
            shapes[layer + "PreAttentionLayerNorm.weight"] = (width,)
            shapes[layer + "PostAttentionLayerNorm.weight"] = (width,)
            for part in ("self.query", "self.key", "self.value", "output.dense"):
                shapes[f"{layer}attention.{part}.weight"] = (width, width)
            shapes[layer + "intermediate.dense.weight"] = (2 * wide, width)
            shapes[layer + "output.dense.weight"] = (width, wide)
        if head == "words":
            shapes |= {"cls.predictions.decoder.weight": (101, width),
                       "cls.predictions.bias": (101,)}
        if head == "sequence":
            shapes |= {"bert.pooler.dense.weight": (width, width), "bert.pooler.dense.bias": (width,)}
        if head in ("sequence", "tokens", "span"):
            name = "qa_outputs" if head == "span" else "classifier"
            shapes |= {name + ".weight": (LABELS[head], width), name + ".bias": (LABELS[head],)}
        self.names = list(shapes)
        self.values = torch.nn.ParameterList(torch.zeros(s) for s in shapes.values())

    def named_parameters(self):
        return zip(self.names, self.values)

    @staticmethod
    def norm(x, weight):
        return weight * x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5)

    @staticmethod
    def turn(x):
        count, _, size = x.shape
        rates = 10000.0 ** -(torch.arange(0, size, 2, dtype=x.dtype) / size)
        angles = torch.arange(count, dtype=x.dtype)[:, None, None] * rates
        a, b = x.chunk(2, -1)
        return torch.cat([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()],
                         -1)

    def hidden(self, ids):
        p = dict(self.named_parameters())
        x = p["bert.embeddings.word_embeddings.weight"][ids]
        count, width = x.shape
        heads = SIZES["num_attention_heads"]
        for i in range(SIZES["num_hidden_layers"]):
            layer = f"bert.encoder.layer.{i}."
            y = self.norm(x, p[layer + "PreAttentionLayerNorm.weight"])
            q, k, v = ((y @ p[f"{layer}attention.self.{part}.weight"].T).view(count, heads, -1)
                       for part in ("query", "key", "value"))
            scores = torch.einsum("qhd,khd->hqk", self.turn(q), self.turn(k))
            scores = scores / (width // heads)**0.5
            context = torch.einsum("hqk,khd->qhd", scores.softmax(-1), v).reshape(count, width)
            x = x + context @ p[layer + "attention.output.dense.weight"].T
            y = self.norm(x, p[layer + "PostAttentionLayerNorm.weight"])
            a, b = (y @ p[layer + "intermediate.dense.weight"].T).chunk(2, -1)
            x = x + (torch.nn.functional.silu(a) * b) @ p[layer + "output.dense.weight"].T
        return self.norm(x, p["bert.encoder.FinalLayerNorm.weight"])

    def run(self, ids, head):
        p = dict(self.named_parameters())
        x = self.hidden(ids)
        if head == "encoder":
            return x
        if head == "words":
            return x @ p["cls.predictions.decoder.weight"].T + p["cls.predictions.bias"]
        if head == "sequence":
            x = torch.tanh(x[:1] @ p["bert.pooler.dense.weight"].T + p["bert.pooler.dense.bias"])
        name = "qa_outputs" if head == "span" else "classifier"
        return x @ p[name + ".weight"].T + p[name + ".bias"]


def names_of(family, head):
    names = {} if FAMILIES[family] is None else dict(FAMILIES[family][2])
    if family == "modernbert":
        where = "cls.predictions.transform" if head == "words" else "bert.pooler"
        span = "qa_outputs" if head == "span" else "classifier"
        names |= {r"head\.dense\.(.*)": rf"{where}.dense.\1",
                  r"head\.norm\.(.*)": rf"{where}.LayerNorm.\1", r"classifier\.(.*)": rf"{span}.\1"}
    return names


def build(family, head):
    """A model, and of each of onebit's names the tensors of its rows: [(parameter, from, to)]."""
    if FAMILIES[family] is None:
        model = NeoBert(head).double()
        return model, {n: [(p, 0, p.shape[0])] for n, p in model.named_parameters()}
    prefix, config, _ = FAMILIES[family]
    chosen = getattr(transformers, prefix + "Config")(
        **config, **({} if head == "encoder" else dict(num_labels=LABELS[head])))
    cls = getattr(transformers, prefix + CLASSES[head])
    pooled = dict(add_pooling_layer=False) if "roberta" in family or family in (
        "camembert", "mpnet") else {}
    model = cls(chosen, **(pooled if head == "encoder" else {})).double().eval()
    tensors = {}
    for name, parameter in model.named_parameters():
        name = name.removeprefix(model.base_model_prefix + ".")
        if head == "encoder" and name.startswith("pooler."):
            continue
        for pattern, ours in names_of(family, head).items():
            if not re.fullmatch(pattern, name):
                continue
            ours = ours if isinstance(ours, list) else [ours]
            rows = parameter.shape[0] // len(ours)
            for part, one in enumerate(ours):
                tensors.setdefault(re.sub(pattern, one, name), []).append(
                    (parameter, part * rows, (part + 1) * rows))
            break
        else:
            raise SystemExit(f"{family}: {head}: {name} has no name in onebit")
    return model, tensors


def config_of(family):
    """What the test has to know of a family's config."""
    if FAMILIES[family] is None:
        return dict(SIZES, model_type="neobert", epsilon=1e-5)
    prefix, given, _ = FAMILIES[family]
    config = getattr(transformers, prefix + "Config")(**given)
    epsilon = getattr(config, "layer_norm_eps", getattr(config, "norm_eps", 1e-12))
    return dict({key: getattr(config, key, SIZES[key]) for key in SIZES}, model_type=config.model_type,
                epsilon=epsilon, segments=getattr(config, "type_vocab_size", 0),
                embedding_size=given.get("embedding_size", 0),
                local_attention=given.get("local_attention", 0))


def joined(parts, of):
    return torch.cat([of(p)[begin:end] for p, begin, end in parts]).detach().double().numpy().ravel()


def fill(tensors):
    with torch.no_grad():
        for name, parts in tensors.items():
            count = sum((end - begin) * p[0].numel() for p, begin, end in parts)
            drawn = hashed(name, count) * 0.25 + (1.0 if "LayerNorm.weight" in name else 0.0)
            drawn = torch.from_numpy(drawn.astype(np.float32)).double()
            for p, begin, end in parts:
                size = (end - begin) * p[0].numel()
                p[begin:end] = drawn[:size].view_as(p[begin:end])
                drawn = drawn[size:]


def make_batch():
    rng = np.random.default_rng(5000)
    rows = sum(LENGTHS)
    starts = np.concatenate([[0], np.cumsum(LENGTHS)])
    labelled = list(range(0, rows, 7))
    spans = [sorted(rng.integers(0, length, 2).tolist()) for length in LENGTHS]
    segments = [int(i >= length // 2) for length in LENGTHS for i in range(length)]
    return dict(tokens=rng.integers(5, 101, rows).tolist(), segments=segments,
                starts=starts.tolist(), masked_rows=labelled,
                masked_targets=rng.integers(5, 101, len(labelled)).tolist(),
                tags=rng.integers(0, 5, len(labelled)).tolist(),
                next_sentence=rng.integers(0, 3, len(LENGTHS)).tolist(),
                span_starts=[a for a, _ in spans], span_ends=[b for _, b in spans])


def outputs_of(family, head, model, batch):
    """The outputs of all rows, or of all sequences."""
    results = []
    for begin, end in zip(batch["starts"], batch["starts"][1:]):
        ids = torch.tensor(batch["tokens"][begin:end])
        if FAMILIES[family] is None:
            results.append(model.run(ids, head))
            continue
        inputs = dict(input_ids=ids[None])
        if getattr(model.config, "type_vocab_size", 0) == 2 and family in ("electra", "nomic_bert"):
            inputs["token_type_ids"] = torch.tensor(batch["segments"][begin:end])[None]
        output = model(**inputs)
        if head == "encoder":
            results.append(output.last_hidden_state[0])
        elif head == "span":
            results.append(torch.stack([output.start_logits[0], output.end_logits[0]], -1))
        else:
            results.append(output.logits if head == "sequence" else output.logits[0])
    return torch.cat(results)


def loss_and_outputs(family, head, model, batch):
    """The loss, and the outputs that are stored."""
    outputs = outputs_of(family, head, model, batch)
    rows = torch.tensor(batch["masked_rows"])
    entropy = torch.nn.functional.cross_entropy
    if head == "encoder":
        factors = torch.from_numpy(hashed("factors", outputs.numel())).view_as(outputs)
        return (outputs * factors).sum() / outputs.shape[0], outputs[::13]
    if head == "words":
        chosen = outputs[rows]
        return entropy(chosen, torch.tensor(batch["masked_targets"])), chosen[::8]
    if head == "tokens":
        chosen = outputs[rows]
        return entropy(chosen, torch.tensor(batch["tags"])), chosen
    if head == "sequence":
        return entropy(outputs, torch.tensor(batch["next_sentence"])), outputs
    loss = 0
    for s, (begin, end) in enumerate(zip(batch["starts"], batch["starts"][1:])):
        for column, place in enumerate(("span_starts", "span_ends")):
            scores = outputs[begin:end, column]
            loss = loss + entropy(scores[None], torch.tensor(batch[place][s:s + 1])) / 2
    return loss / len(LENGTHS), outputs[::5]


def samples_of(flat):
    return flat[[i * flat.size // SAMPLES for i in range(SAMPLES)]]


def golden_of(family, head, batch):
    model, tensors = build(family, head)
    fill(tensors)
    parameters = {id(p): p for parts in tensors.values() for p, _, _ in parts}.values()
    for p in parameters:
        p.requires_grad_(True)
    settings = dict(ADAMW)
    decay = settings.pop("weight_decay")
    optimizer = torch.optim.AdamW(
        [dict(params=[p for p in parameters if p.ndim > 1], weight_decay=decay),
         dict(params=[p for p in parameters if p.ndim == 1], weight_decay=0.0)], **settings)
    losses, result, gradients = [], [], {}
    for step in range(STEPS + 1):
        optimizer.zero_grad()
        loss, outputs = loss_and_outputs(family, head, model, batch)
        losses.append(loss.item())
        if step == STEPS:
            break
        loss.backward()
        if step == 0:
            result.append(outputs.detach().numpy().ravel())
            gradients = {name: joined(parts, lambda p: p.grad) for name, parts in tensors.items()}
        optimizer.step()
    for name in sorted(tensors):
        flat = gradients[name]
        result += [[np.abs(flat).max(), np.linalg.norm(flat), flat @ hashed(name + "#0", flat.size)],
                   samples_of(flat), samples_of(joined(tensors[name], lambda p: p.data))]
    return np.concatenate([losses] + result).astype("<f4"), len(tensors)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--family", action="append")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    batch = make_batch()
    (arguments.folder / "batch.json").write_text(json.dumps(batch) + "\n")
    configs = [f"{json.dumps(family)}: {json.dumps(config_of(family))}" for family in FAMILIES]
    (arguments.folder / "configs.json").write_text("{\n" + ",\n".join(configs) + "\n}\n")
    for family in arguments.family or FAMILIES:
        for head in HEADS:
            prefix = FAMILIES[family] and FAMILIES[family][0]
            if prefix and not hasattr(transformers, prefix + CLASSES[head]):
                print(f"{family}: {head}: transformers has no class")
                continue
            values, count = golden_of(family, head, batch)
            (arguments.folder / f"{family}_{head}.f32").write_bytes(values.tobytes())
            print(f"{family}: {head}: {count} tensors, loss {values[0]:.6f}")


if __name__ == "__main__":
    main()
