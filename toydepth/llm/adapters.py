"""Where the residual stream runs through a language model, by model type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from toydepth.errors import InputError, did_you_mean


@dataclass(frozen=True)
class _Paths:
    """Attribute names, from the language model down: backbone; of the backbone, blocks and final norm."""

    backbone: str
    blocks: str
    norm: str


_LLAMA = _Paths("model", "layers", "norm")

# By `config.model_type`. All add each block's output to one stream, and norm that once, before the head.
_PATHS = {
    "gpt2": _Paths("transformer", "h", "ln_f"),
    "gpt_neox": _Paths("gpt_neox", "layers", "final_layer_norm"),
    "llama": _LLAMA,
    "mistral": _LLAMA,
    "opt": _Paths("model.decoder", "layers", "final_layer_norm"),
    "qwen2": _LLAMA,
    "qwen3": _LLAMA,
}


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of one model that its residual stream meets.

    h_0 is the input of blocks[0] (token and, where learned, position embeddings), h_k the output of blocks[k - 1]; the
    logits of a state are head(norm(state)).

    Attributes:
        model_type: as its config names it.
        backbone: the model without its head; computes nothing but the stream and the final norm.
        blocks: in their order.
        norm: the final norm; the identity where the model has none.
        head: from a normed state to logits.
        width: of the stream. max_positions: how long a sequence may be.
    """

    model_type: str
    backbone: Any
    blocks: list[Any]
    norm: Any
    head: Any
    width: int
    max_positions: int

    @property
    def depth(self) -> int:
        """How many blocks."""
        return len(self.blocks)

    def check_length(self, max_length: int) -> None:
        """Raises InputError for rows that are longer than the model has positions."""
        if max_length > self.max_positions:
            raise InputError(
                f"max_length must be at most {self.max_positions}, the model's positions, got {max_length}. Lower it."
            )


def check_config(config: Any) -> None:
    """Refuses a model whose residual stream this room cannot read; before any weight is loaded.

    Args:
        config: a transformers config, or anything with its attributes.

    Raises:
        InputError: for a model type that is not known; for a post-norm OPT, or one that projects its width (OPT-350m).

    Example:
        >>> from types import SimpleNamespace
        >>> check_config(SimpleNamespace(model_type="gpt2"))
        >>> check_config(SimpleNamespace(model_type="bert"))
        Traceback (most recent call last):
        toydepth.errors.InputError: model type must be one of gpt2, gpt_neox, llama, mistral, opt, qwen2, qwen3,
        got bert. Its residual stream is not known here; choose a model of these types.
    """
    kind = getattr(config, "model_type", None)
    if kind not in _PATHS:
        known = ", ".join(_PATHS)
        hint = did_you_mean(str(kind), _PATHS)
        raise InputError(
            f"model type must be one of {known}, got {kind}. "
            f"Its residual stream is not known here; choose a model of these types.{hint}"
        )
    if kind != "opt":
        return
    if not config.do_layer_norm_before:
        # A norm after each addition rescales the stream itself: differences of states are then no block's update.
        raise InputError(
            "OPT must be pre-norm (do_layer_norm_before), got a post-norm one, as OPT-350m is. "
            "Its blocks norm the stream itself, so that updates mean something else; choose another size of OPT."
        )
    if config.word_embed_proj_dim != config.hidden_size:
        raise InputError(
            f"OPT must embed at the width of its stream ({config.hidden_size}), got word_embed_proj_dim "
            f"{config.word_embed_proj_dim}, as OPT-350m has. Its head cannot read its states; choose another size."
        )


def find_parts(model: Any) -> Parts:
    """Returns blocks, final norm and head of a causal language model of transformers.

    Raises:
        InputError: as `check_config`; for a model without a head; for one that is not built as its type is.
    """
    config = model.config
    check_config(config)
    kind = config.model_type
    paths = _PATHS[kind]
    head = model.get_output_embeddings()
    if head is None:
        got = type(model).__name__
        raise InputError(f"model must be a causal language model, got {got}. Load it by AutoModelForCausalLM.")
    try:
        backbone = model
        for name in paths.backbone.split("."):
            backbone = getattr(backbone, name)
        blocks, norm = list(getattr(backbone, paths.blocks)), getattr(backbone, paths.norm)
    except AttributeError as error:
        raise InputError(
            f"model must be built as transformers builds a {kind}, got a {type(model).__name__} without "
            f"{error.name}. Load it by AutoModelForCausalLM."
        ) from error
    if len(blocks) != config.num_hidden_layers or len(blocks) < 1:
        raise InputError(
            f"model must hold num_hidden_layers ({config.num_hidden_layers}) blocks, one or more, got {len(blocks)}. "
            f"Its config and its weights do not belong together."
        )
    if norm is None:  # OPT files written before the final norm was added
        from torch import nn  # pyright: ignore[reportMissingImports]

        norm = nn.Identity()
    return Parts(kind, backbone, blocks, norm, head, config.hidden_size, config.max_position_embeddings)
