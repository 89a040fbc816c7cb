"""Trains transformers' BERT on the same work as the bench programs.

Precisions: "f32". "autocast": f32 weights with bf16 products, like transformers' Trainer. "bf16":
bf16 weights and activations with f32 master weights and moments in the optimizer, like onebit. In
PyTorch this is faster than autocast.
"""

import torch
from bert_shapes import MODERN_PRESETS, PRESETS, VOCABULARY
from transformers import (BertConfig, BertForPreTraining, BertForQuestionAnswering,
                          ModernBertConfig, ModernBertForMaskedLM)

PRECISIONS = ("f32", "autocast", "bf16")


def bert_config(preset, layers=0):
    """Returns a preset's configuration, optionally with another number of layers. Dropout is 0.1."""
    own, hidden = PRESETS[preset]
    return BertConfig(vocab_size=VOCABULARY, hidden_size=hidden, num_hidden_layers=layers or own,
                      num_attention_heads=hidden // 64, intermediate_size=4 * hidden,
                      attn_implementation="sdpa")


class Update:
    """Backward, optional clipping, and AdamW."""

    def __init__(self, model, precision, rate, clip=None, fused=True):
        spare = ("bias", "LayerNorm")
        self.named = list(model.named_parameters())
        self.parameters = [p for _, p in self.named]
        self.masters = self.parameters
        self.clip = clip
        if precision == "bf16":
            self.masters = [p.detach().float() for p in self.parameters]
            for master in self.masters:
                master.grad = torch.zeros_like(master)
            model.bfloat16()
        groups = {0.01: [], 0.0: []}
        for (name, _), master in zip(self.named, self.masters):
            groups[0.0 if any(word in name for word in spare) else 0.01].append(master)
        self.optimizer = torch.optim.AdamW(
            [dict(params=group, weight_decay=decay) for decay, group in groups.items()], lr=rate,
            fused=fused)

    def run(self, loss):
        for parameter in self.parameters:
            parameter.grad = None
        loss.backward()
        apart = self.masters is not self.parameters
        with torch.no_grad():
            if apart:
                torch._foreach_copy_([m.grad for m in self.masters],
                                     [p.grad for p in self.parameters])
            if self.clip:
                torch.nn.utils.clip_grad_norm_(self.masters, self.clip)
            self.optimizer.step()
            if apart:
                torch._foreach_copy_(self.parameters, self.masters)


class Step:
    """A whole training step: run(inputs). Subclasses define the model, loss(inputs) and inputs."""

    def __init__(self, model, precision, device, **update):
        self.device = device
        self.precision = precision
        self.model = model.to(device).train()
        self.update = Update(self.model, precision, **update)
        self.loss_of = self.loss  # may be replaced by a compiled function

    def run(self, inputs):
        with torch.autocast(self.device, dtype=torch.bfloat16,
                            enabled=self.precision == "autocast"):
            loss = self.loss_of(inputs)
        self.update.run(loss)
        return loss.detach()


class PretrainingStep(Step):
    """Trains both heads. The decoder runs only on masked rows."""

    def __init__(self, preset, precision="f32", device="cpu"):
        torch.manual_seed(1)
        with torch.device(device):
            model = BertForPreTraining(bert_config(preset))
        super().__init__(model, precision, device, rate=1e-4)
        self.heads = self.head_losses

    def inputs(self, batch, tokens, masked):
        """Returns full sequences of random words, `masked` of which are to be predicted."""
        shape = (batch, tokens)
        segments = (torch.arange(tokens) >= tokens // 2).long().expand(shape).contiguous()
        columns = 1 + torch.arange(masked) * (tokens - 1) // masked
        rows = (torch.arange(batch)[:, None] * tokens + columns).reshape(-1)
        made = dict(tokens=torch.randint(0, VOCABULARY, shape), segments=segments, rows=rows,
                    targets=torch.randint(0, VOCABULARY, rows.shape),
                    next_sentence=torch.randint(0, 2, (batch,)))
        return {name: value.to(self.device) for name, value in made.items()}

    def head_losses(self, states, pooled, inputs):
        chosen = states.reshape(-1, states.shape[-1])[inputs["rows"]]
        words = self.model.cls.predictions(chosen)
        pairs = self.model.cls.seq_relationship(pooled)
        cross_entropy = torch.nn.functional.cross_entropy
        return (cross_entropy(words.float(), inputs["targets"]) +
                cross_entropy(pairs.float(), inputs["next_sentence"]))

    def loss(self, inputs):
        states, pooled = self.model.bert(inputs["tokens"], token_type_ids=inputs["segments"],
                                         return_dict=False)[:2]
        return self.heads(states, pooled, inputs)


def pretraining_step(preset, precision="f32", device="cpu"):
    """Returns the step of a BERT, or of a ModernBERT."""
    kind = ModernPretrainingStep if preset in MODERN_PRESETS else PretrainingStep
    return kind(preset, precision, device)


class ModernPretrainingStep(PretrainingStep):
    """Trains the masked-word head of a ModernBERT. The decoder runs only on masked rows."""

    def __init__(self, preset, precision="f32", device="cpu"):
        torch.manual_seed(1)
        layers, hidden, wide = MODERN_PRESETS[preset]
        config = ModernBertConfig(
            vocab_size=VOCABULARY, hidden_size=hidden, num_hidden_layers=layers,
            num_attention_heads=hidden // 64, intermediate_size=wide, pad_token_id=0,
            bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2,
            attn_implementation="sdpa")
        with torch.device(device):
            model = ModernBertForMaskedLM(config)
        Step.__init__(self, model, precision, device, rate=1e-4)

    def loss(self, inputs):
        states = self.model.model(inputs["tokens"]).last_hidden_state
        chosen = states.reshape(-1, states.shape[-1])[inputs["rows"]]
        words = self.model.decoder(self.model.head(chosen))
        return torch.nn.functional.cross_entropy(words.float(), inputs["targets"])


class QuestionAnsweringStep(Step):
    """Trains on padded windows with masked attention. Gradients are clipped to norm 1."""

    def __init__(self, preset, precision="f32", device="cpu", layers=0, fused=True):
        torch.manual_seed(1)
        with torch.device(device):
            model = BertForQuestionAnswering(bert_config(preset, layers))
        super().__init__(model, precision, device, rate=3e-5, clip=1.0, fused=fused)

    def inputs(self, lengths, padded_to):
        """Returns padded windows of random words with the answer in the middle."""
        at = torch.tensor(lengths)
        made = dict(input_ids=torch.randint(1000, 20000, (len(lengths), padded_to)),
                    attention_mask=(torch.arange(padded_to)[None] < at[:, None]).long(),
                    start_positions=at // 2, end_positions=at // 2)
        return {name: value.to(self.device) for name, value in made.items()}

    def loss(self, inputs):
        return self.model(**inputs).loss
