"""Prompts: the reference tokenizer's own token ids, one BOS, and errors instead of silent drops."""

from pathlib import Path
from typing import Any

import pytest

from ba_eval.checkpoint import Checkpoint, TrainedPrompt
from ba_eval.errors import InputError
from ba_eval.prompt import QWEN_BOXED_SYSTEM, Renderer, check_fits
from tests.chat_templates import FAMILIES, SYSTEM, USER, Family
from tests.models import CHATML, byte_tokenizer


def checkpoint(folder: Path, *, prompt: TrainedPrompt | None = None, **tokenizer: Any) -> Checkpoint:
    """A checkpoint that is nothing but its tokenizer, a byte-level one."""
    byte_tokenizer(folder, **tokenizer)
    return Checkpoint(
        name="m",
        path=str(folder),
        weights="w",
        tokenizer_dir=str(folder),
        tokenizer_id="t",
        max_model_len=2048,
        prompt=prompt,
    )


def family_checkpoint(folder: Path, family: Family) -> Checkpoint:
    return checkpoint(
        folder,
        special=family.special,
        bos=family.bos,
        eos=family.eos,
        adds_bos=family.adds_bos,
        chat_template=family.template,
    )


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_public_families(tmp_path: Path, family: Family) -> None:
    subject = family_checkpoint(tmp_path, family)
    renderer = Renderer(subject, None, family.args, family.system)
    assert renderer.text(USER) == family.prompt
    assert renderer.opens_thinking == family.opens_thinking

    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    pinned = {"date_string": "26 Jul 2024"} if "date_string" in family.template else {}
    reference = tokenizer.apply_chat_template(
        renderer.messages(USER), add_generation_prompt=True, tokenize=True, return_dict=False, **family.args, **pinned
    )
    ids = renderer.render(USER)
    assert ids == reference
    if family.bos and family.prompt.startswith(family.bos):
        assert ids[0] == tokenizer.bos_token_id
        assert ids[1] != tokenizer.bos_token_id


LLAMA: dict[str, Any] = {"special": ("<s>", "</s>"), "bos": "<s>", "eos": "</s>"}


@pytest.mark.parametrize("adds_bos", [True, False])
@pytest.mark.parametrize(
    ("template", "writes"),
    [
        ("{{ bos_token }}[INST] {{ messages[0].content }} [/INST]", 1),
        ("{{ bos_token }}{{ bos_token }}[INST] {{ messages[0].content }}", 2),
        ("[INST] {{ messages[0].content }} [/INST]", 0),
    ],
)
def test_one_bos(tmp_path: Path, adds_bos: bool, template: str, writes: int) -> None:
    renderer = Renderer(checkpoint(tmp_path, **LLAMA, adds_bos=adds_bos, chat_template=template))
    ids = renderer.render("hi")
    bos = renderer._tokenizer.bos_token_id
    assert ids.count(bos) == (1 if writes or adds_bos else 0)
    assert bos not in ids[1:]


def test_raw_text(tmp_path: Path) -> None:
    adding = Renderer(checkpoint(tmp_path / "a", **LLAMA, adds_bos=True, chat_template=None), "none")
    plain = Renderer(checkpoint(tmp_path / "b", **LLAMA, adds_bos=False, chat_template=None), "none")
    ids = plain.render("hi\n")
    assert plain._tokenizer.decode(ids) == "hi\n"
    assert adding.render("hi\n") == [adding._tokenizer.bos_token_id, *ids]
    assert Renderer(checkpoint(tmp_path / "b", chat_template=None), "none", None, "S").text("hi") == "S\n\nhi"


def test_qwen_boxed(tmp_path: Path) -> None:
    base = checkpoint(tmp_path, chat_template=None)
    renderer = Renderer(base, "qwen-boxed")
    assert renderer.text("hi") == (
        "<|im_start|>system\nPlease reason step by step, and put your final answer within \\boxed{}.<|im_end|>\n"
        "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    )
    assert QWEN_BOXED_SYSTEM not in Renderer(base, "qwen-boxed", None, "Other.").text("hi")


def test_no_chat_template_names_the_two_that_can_be_used(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no chat template.*--template qwen-boxed.*--template none"):
        Renderer(checkpoint(tmp_path, chat_template=None))


def test_a_template_file(tmp_path: Path) -> None:
    file = tmp_path / "own.jinja"
    file.write_text("Q: {{ messages[-1].content }}\nA:{% if think %}<think>\n{% endif %}")
    subject = checkpoint(tmp_path / "m")
    renderer = Renderer(subject, str(file), {"think": True})
    assert renderer.text("hi") == "Q: hi\nA:<think>\n"
    assert renderer.opens_thinking
    assert "opens <think>" in renderer.description
    assert not Renderer(subject, str(file)).opens_thinking


def test_the_prompt_of_the_training_is_used_unless_another_is_named(tmp_path: Path) -> None:
    trained = TrainedPrompt(
        template="T{{ messages[0].content }}|{{ messages[1].content }}{{ x }}", system="s", args={"x": 1}
    )
    subject = checkpoint(tmp_path, prompt=trained)
    renderer = Renderer(subject)
    assert renderer.text("hi") == "Ts|hi1"
    assert "training.json" in renderer.description
    assert Renderer(subject, None, {"x": 2}).text("hi") == "Ts|hi2"
    assert Renderer(subject, "none").text("hi") == "hi"


def test_the_date_does_not_change_prompts(tmp_path: Path) -> None:
    template = "{{ strftime_now('%d %b %Y') }} {{ messages[0].content }}"
    renderer = Renderer(checkpoint(tmp_path, chat_template=template))
    assert renderer.text("hi") == "26 Jul 2024 hi"
    assert "date pinned to 2024-07-26" in renderer.description


def test_identity_follows_all_that_a_prompt_depends_on(tmp_path: Path) -> None:
    template = "{{ messages|map(attribute='content')|join }}{{ a }}"
    subject = checkpoint(tmp_path, chat_template=template)
    other_files = Checkpoint(**{**subject.__dict__, "tokenizer_id": "u"})
    other_name = Checkpoint(**{**subject.__dict__, "name": "n", "weights": "v"})
    identities = [
        Renderer(subject).identity,
        Renderer(other_files).identity,
        Renderer(subject, None, {"a": 1}).identity,
        Renderer(subject, None, {"a": "1"}).identity,
        Renderer(subject, None, None, "s").identity,
        Renderer(subject, "none").identity,
        Renderer(subject, "qwen-boxed").identity,
    ]
    assert len(set(identities)) == len(identities)
    assert Renderer(other_name).identity == identities[0]


_CONTENT = "{{ messages[0].content }}"
_REFUSES = "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}" + _CONTENT


@pytest.mark.parametrize(
    ("template", "args", "system", "word"),
    [
        (_CONTENT + "{{ enable_thinking }}", {"enable_thinkin": 1}, None, "did you mean 'enable_thinking'"),
        (_CONTENT, {"x": 1}, None, "reads no such argument"),
        ("{{ messages[-1].content }}", {}, "Sys", "drops the system message"),
        (_REFUSES, {}, "Sys", "no system"),
        ("constant", {}, None, "drops the user message"),
        ("{% if %}", {}, None, "chat template failed"),
        ("{{ messages[7].content.x }}", {}, None, "chat template failed"),
    ],
)
def test_nothing_is_dropped_in_silence(
    tmp_path: Path, template: str, args: dict[str, Any], system: str | None, word: str
) -> None:
    with pytest.raises(InputError, match=word) as error:
        Renderer(checkpoint(tmp_path, chat_template=template), None, args, system)
    assert "\n" not in str(error.value)


def test_unknown_templates(tmp_path: Path) -> None:
    subject = checkpoint(tmp_path)
    with pytest.raises(InputError, match="did you mean 'qwen-boxed'"):
        Renderer(subject, "qwen_boxed")
    with pytest.raises(InputError, match=r"neither a named template nor a \.jinja file"):
        Renderer(subject, "/none/x.jinja")
    with pytest.raises(InputError, match="takes no arguments"):
        Renderer(subject, "none", {"x": 1})


def test_a_broken_tokenizer_is_one_line(tmp_path: Path) -> None:
    subject = checkpoint(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match="the tokenizer cannot be loaded") as error:
        Renderer(subject)
    assert "\n" not in str(error.value)


def test_a_template_cannot_reach_out_of_its_sandbox(tmp_path: Path) -> None:
    template = "{{ messages[0].content }}{{ messages.__class__.__mro__[1].__subclasses__() }}"
    with pytest.raises(InputError, match="SecurityError"):
        Renderer(checkpoint(tmp_path, chat_template=template))


def test_several_templates_in_one_tokenizer(tmp_path: Path) -> None:
    templates = [
        {"name": "tool_use", "template": "tools {{ messages[0].content }}"},
        {"name": "default", "template": CHATML},
    ]
    assert Renderer(checkpoint(tmp_path, chat_template=templates)).text("hi").startswith("<|im_start|>user\nhi")


def test_what_fits() -> None:
    check_fits({"a": 10, "b": 20}, 80, 100, where="m on x")
    check_fits({"a": 10}, 10**9, None, where="m on x")
    check_fits({}, 10**9, 5, where="m on x")
    with pytest.raises(InputError, match=r"m on x: max_tokens 81 cannot fit.*problem b.*20 tokens.*--max-tokens 80"):
        check_fits({"a": 10, "b": 20}, 81, 100, where="m on x")
    with pytest.raises(InputError, match="problem b has 100 tokens"):
        check_fits({"a": 10, "b": 100}, 1, 100, where="m on x")


def test_the_system_message_of_these_tests_is_in_them() -> None:
    assert sum(SYSTEM in family.prompt for family in FAMILIES) >= 9
