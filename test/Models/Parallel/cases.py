"""Which plan of examples/parallel is for which model, and the formula for what it sends.

`formula` is what the form sends as its paper has it; where Cleave finds a form that sends less, `taken` is a formula for that, or None
where it is a mixture, and `why` says what it does.
"""
from dataclasses import dataclass, replace
from typing import Callable

from formulas import (F32, Sent, Transformer, Window, edges, experts, fully_sharded, gathered_keys, layer_weights, megatron,
                      megatron_sequence, nothing, ring, ulysses)

SAME = object()


@dataclass
class Case:
    model: str  # below test/Models
    form: str
    formula: Callable  # Sizes -> Sent
    taken: Callable = SAME
    why: str = ""
    share: float = 1.15  # of an equal share of the flops, at most: what is small is repeated on each rank
    waits_for: str = ""  # what may not be there yet: words of the refusal


@dataclass
class Sizes:
    """What a plan says: how many ranks, of each axis and of all, and its `dims`."""
    mesh: dict
    dims: dict

    @property
    def ranks(self):
        return next(reversed(self.mesh.values()))

    def transformer(self, **dimensions):
        return Transformer(ranks=self.ranks, **{"batch": self.dims.get("batch"), "length": self.dims.get("seq"), **dimensions})


def bert(sizes):
    return sizes.transformer(width=64, heads=4, layers=2, inner=128)


def gpt2(sizes):
    return sizes.transformer(width=64, heads=4, layers=2, inner=128)


def llama(sizes):
    return sizes.transformer(width=64, heads=8, kv_heads=2, layers=2, inner=96, gates=2)


def t5_encoder(sizes):
    return sizes.transformer(width=64, heads=4, layers=2, inner=96, batch=2, length=12)


def t5_decoder(sizes):
    return sizes.transformer(width=64, heads=4, layers=2, inner=96, batch=2, length=6)


def vit(sizes):
    return sizes.transformer(width=32, heads=4, layers=2, inner=128, batch=4, length=197)


def padded(model):
    """What ranks have of a length that they do not divide is as long as the longest."""
    return replace(model, length=-(-model.length // model.ranks) * model.ranks)


def swin(sizes, stage):
    """A stage of Swin has two blocks; side 16 and 8 of 16 and 32 channels."""
    return sizes.transformer(width=16 << stage, heads=2 << stage, layers=2, inner=64 << stage, batch=2, length=256 >> 2 * stage)


def join(*parts):
    """Several formulas together."""
    sent = Sent()
    for part in parts:
        sent.counts += part.counts
        sent.bytes += part.bytes
    return sent


def mask(sizes):
    """Which tokens are there, a byte each, is needed whole."""
    return Sent().all_gather(sizes.ranks, sizes.dims["batch"] * sizes.dims["seq"])


def first_token(sizes):
    """The rank that has the first token gives it to the pooler: the others add zeros."""
    return Sent().all_reduce(sizes.ranks, sizes.dims["batch"] * 64 * F32)


def t5(sizes, form, more):
    """Two blocks a layer of the encoder, three of the decoder, which reads the encoder's result, too."""
    return join(form(t5_encoder(sizes), 2, more), form(t5_decoder(sizes), 3, more))


def t5_context(sizes):
    """Keys and values are gathered, the encoder's for each layer of the decoder once more."""
    encoder = gathered_keys(t5_encoder(sizes))
    return join(Sent().all_gather(sizes.ranks, 2 * 12), encoder, gathered_keys(t5_decoder(sizes)), encoder)


def t5_context_queries(sizes):
    """In cross attention queries go to the keys, 6 tokens to 12: they are gathered; maxima and sums of each row are reduced, a
    number for each head and query, and the results scattered, as in Flash-Decoding (Dao and others, 2023)."""
    p, decoder = sizes.ranks, t5_decoder(sizes)
    cross = Sent().all_gather(p, decoder.activation(), 2).all_reduce(p, 2 * 4 * 6 * F32, 4).reduce_scatter(p, decoder.activation(), 2)
    return join(Sent().all_gather(p, 2 * 12), gathered_keys(t5_encoder(sizes)), gathered_keys(decoder), cross)


def t5_weights(sizes):
    decoder = t5_decoder(sizes)
    cross = [decoder.width ** 2] * 4 * decoder.layers
    return fully_sharded(sizes.ranks, layer_weights(t5_encoder(sizes)) + layer_weights(decoder) + cross + [64 * 128])


def vit_taken(sizes):
    """Behind the last layer only the class token is read: the sum is scattered over images, and the logits are gathered."""
    model = vit(sizes)
    return (Sent().all_reduce(model.ranks, model.activation(), 2 * model.layers - 1).reduce_scatter(model.ranks, model.activation())
            .all_gather(model.ranks, 4 * 8 * F32))


def swin_taken(sizes):
    """Behind the last block of each stage sums are scattered over images, so that the norms there are cut."""
    p, sent = sizes.ranks, Sent()
    for model in (swin(sizes, 0), swin(sizes, 1)):
        sent.all_reduce(p, model.activation(), 2 * model.layers - 1).reduce_scatter(p, model.activation())
    # Merged patches: half as many numbers as the first stage had.
    return sent.all_gather(p, swin(sizes, 0).activation() / 2).all_gather(p, 2 * 8 * F32)


def swin_rolls(sizes, pictures):
    """Two rows of patches go round before the windows and back behind them, in the second block of each stage; the means of the two
    halves are added as terms of the logits. All that for each of a rank's pictures."""
    rolled = [Window(16, 16, 2)] * 2 + [Window(32, 8, 2)] * 2
    return join(edges(rolled, pictures), Sent().all_reduce(sizes.ranks, pictures * 8 * F32))


def resnet_windows(sizes):
    """On two ranks each gives the other one row for a convolution of 3 x 3, and of a stride of 2 one rank gives one. Of 32 x 32:
    the stem, its pool, then stages of 12, 16, 24 and 40 channels at 16, 8, 4 and 2 rows; the first convolution of each reads
    the last stage."""
    stages = [Window(3, 32), Window(12, 32)] + [Window(12, 16)] * 5 + [Window(16, 8)] * 4 + [Window(24, 4)] * 4 + [Window(40, 2)] * 3
    return join(edges(stages, 1), Sent().all_reduce(2, 10 * F32))


def resnet_weights(sizes):
    channels, three, one = [12, 16, 24, 40], [3 * 12], []
    for stage, width in enumerate(channels):
        before = channels[max(stage - 1, 0)]
        three += [before * width] + [width * width] * 3
        one += [before * width] if stage else []
    return fully_sharded(sizes.ranks, [9 * size for size in three] + one)


def unet_windows(sizes):
    """A row for each convolution of 3 x 3 and for the linear resizing, none for pools of 2 x 2 and the transposed convolution of
    2 x 2. A group norm reduces two numbers for each of 4 groups: mean and variance."""
    windows = [Window(3, 32), Window(16, 32), Window(16, 16), Window(24, 16), Window(24, 8), Window(32, 8), Window(48, 16), Window(24, 16),
               Window(24, 16), Window(40, 32), Window(16, 32)]
    return join(edges(windows, 1), Sent().all_reduce(sizes.ranks, 4 * F32, 10))


def unet_weights(sizes):
    three = [3 * 16, 16 * 16, 16 * 24, 24 * 24, 24 * 32, 32 * 32, 48 * 24, 24 * 24, 40 * 16, 16 * 16]
    return fully_sharded(sizes.ranks, [9 * size for size in three] + [4 * 32 * 24, 16 * 2])


def moe_taken(sizes):
    """What the experts found goes from experts to parts of the width, is combined there, and gathered."""
    return Sent().all_to_all(sizes.ranks, 8 * 6 * 64 * F32).all_gather(sizes.ranks, 2 * 8 * 64 * F32)


FEW = "the batch is small: weights stay, and activations are sent where they are fewer bytes"
MOVED = "four images of 197 tokens are more bytes than the weights: these are gathered, and tokens exchanged for images"
LAST = "behind a last block sums are scattered instead of reduced"

UNEVEN = "uneven shards are not supported"

CASES = {
    "bert-data": Case("bert_ts17", "data", lambda s: nothing(bert(s))),
    "bert-megatron": Case("bert_ts17", "Megatron", lambda s: megatron(bert(s))),
    "bert-megatron-sequence": Case("bert_ts17", "Megatron, sequence", lambda s: join(megatron_sequence(bert(s)), first_token(s))),
    "bert-context": Case("bert_ts17", "context", lambda s: join(ulysses(bert(s)), mask(s), first_token(s))),
    "bert-fsdp": Case("bert_ts17", "fully sharded", lambda s: fully_sharded(s.ranks, layer_weights(bert(s)))),
    "gpt2-data": Case("gpt2_ts17", "data", lambda s: nothing(gpt2(s))),
    "gpt2-megatron": Case("gpt2_ts17", "Megatron", lambda s: megatron(gpt2(s), more=1)),
    "gpt2-megatron-sequence": Case("gpt2_ts17", "Megatron, sequence", lambda s: megatron_sequence(gpt2(s), more=1)),
    "gpt2-context": Case("gpt2_ts17", "context", lambda s: join(ulysses(gpt2(s)), mask(s))),
    "gpt2-ring": Case("gpt2_ts17", "context, ring", lambda s: join(ring(gpt2(s)), mask(s))),
    "gpt2-fsdp": Case("gpt2_ts17", "fully sharded", lambda s: fully_sharded(s.ranks, layer_weights(gpt2(s)))),
    "llama-data": Case("llama_gqa_dyn23", "data", lambda s: nothing(llama(s))),
    "llama-megatron": Case("llama_gqa_dyn23", "Megatron", lambda s: megatron(llama(s), more=1)),
    "llama-megatron-sequence": Case("llama_gqa_dyn23", "Megatron, sequence", lambda s: megatron_sequence(llama(s), more=1)),
    "llama-context": Case("llama_gqa_dyn23", "context", lambda s: join(gathered_keys(llama(s)), mask(s))),
    "llama-ring": Case("llama_gqa_dyn23", "context, ring", lambda s: join(ring(llama(s)), mask(s))),
    "llama-fsdp": Case("llama_gqa_dyn23", "fully sharded", lambda s: fully_sharded(s.ranks, layer_weights(llama(s)) + [64 * 128])),
    "t5-data": Case("t5_like_dyn18", "data", lambda s: nothing(t5_encoder(s))),
    "t5-megatron": Case("t5_like_dyn18", "Megatron", lambda s: t5(s, megatron, 1)),
    "t5-megatron-sequence": Case("t5_like_dyn18", "Megatron, sequence", lambda s: t5(s, megatron_sequence, 1)),
    "t5-context": Case("t5_like_dyn18", "context", t5_context, t5_context_queries,
                       "in cross attention the few queries are sent to the many keys, not keys and values to them"),
    "t5-fsdp": Case("t5_like_dyn18", "fully sharded", t5_weights, None, FEW),
    "vit-data": Case("Parallel/vit197", "data", lambda s: nothing(vit(s))),
    "vit-megatron": Case("Parallel/vit197", "Megatron", lambda s: megatron(vit(s)), vit_taken, LAST),
    # Shards of 50 tokens; what is taken is a mixture, and less than either form.
    "vit-megatron-sequence": Case("Parallel/vit197", "Megatron, sequence", lambda s: megatron_sequence(padded(vit(s))), None, MOVED,
                                  share=1.5, waits_for=UNEVEN),
    "vit-context": Case("Parallel/vit197", "context", lambda s: gathered_keys(padded(vit(s))), None,
                        "a layer's tokens are gathered once, not keys and values, or exchanged", share=1.5, waits_for=UNEVEN),
    "vit-fsdp": Case("Parallel/vit197", "fully sharded", lambda s: fully_sharded(s.ranks, layer_weights(vit(s)))),
    "swin-data": Case("Parallel/swin", "data", lambda s: nothing(swin(s, 0))),
    "swin-megatron": Case("Parallel/swin", "Megatron", lambda s: join(megatron(swin(s, 0)), megatron(swin(s, 1))), swin_taken, LAST),
    "swin-spatial": Case("Parallel/swin", "spatial", lambda s: swin_rolls(s, 1)),
    "swin-pictures": Case("Parallel/swin", "spatial", lambda s: swin_rolls(s, 2)),
    "swin-fsdp": Case("Parallel/swin", "fully sharded",
                      lambda s: fully_sharded(s.ranks, layer_weights(swin(s, 0)) + layer_weights(swin(s, 1)))),
    "moe-expert": Case("moe_dyn18", "expert", lambda s: Sent().all_reduce(s.ranks, 2 * 8 * 64 * F32), moe_taken,
                       "experts' results are exchanged for parts of the width, combined there and gathered", share=2.4),
    "moe-groups-data": Case("Parallel/moe_groups", "data", lambda s: Sent()),
    "moe-groups-expert": Case("Parallel/moe_groups", "expert", lambda s: experts(s.ranks, 8, 2, 32)),
    "resnet-data": Case("resnet_ts17", "data", lambda s: Sent()),
    "resnet-spatial": Case("resnet_ts17", "spatial", resnet_windows),
    "resnet-fsdp": Case("resnet_ts17", "fully sharded", resnet_weights),
    "unet-data": Case("unet_dyn18", "data", lambda s: Sent()),
    "unet-spatial": Case("unet_dyn18", "spatial", unet_windows),
    "unet-fsdp": Case("unet_dyn18", "fully sharded", unet_weights, None, FEW),
}
