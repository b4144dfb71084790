"""The prompt formats of public model families: a template that writes each, its special tokens, and what comes out.

The templates are written for these tests in the shapes that the families' own take (loops, namespaces, conditions on
roles, trimming, raised errors, arguments); `prompt` is the text that the family documents for
one system message SYSTEM (left out where the family has none) and one user message USER.
"""

from dataclasses import dataclass, field
from typing import Any

SYSTEM, USER = "Be brief.", "What is 2 + 2?\nExplain."


@dataclass(frozen=True)
class Family:
    """One public format."""

    name: str
    template: str
    prompt: str
    special: tuple[str, ...]
    bos: str | None = None
    eos: str = ""
    adds_bos: bool = False
    """Whether the family's tokenizer writes BOS by itself too, as the template does: the double BOS trap."""
    system: str | None = SYSTEM
    args: dict[str, Any] = field(default_factory=dict)
    opens_thinking: bool = False


_CHATML_LOOP = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + "
    "'\\n'}}{% endfor %}"
)
_CHATML_END = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
_QWEN3 = (
    "{%- if messages[0].role == 'system' %}{{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}"
    "{%- endif %}{%- set ns = namespace(last=messages|length - 1) %}{%- for message in messages %}"
    "{%- if message.role == 'user' %}{{- '<|im_start|>user\\n' + message.content + '<|im_end|>' + '\\n' }}"
    "{%- elif message.role == 'assistant' %}{{- '<|im_start|>assistant\\n' + message.content.split('</think>')[-1] }}"
    "{{- '<|im_end|>\\n' }}{%- endif %}{%- endfor %}{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}"
    "{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}"
    "{%- endif %}{%- endif %}"
)
_LLAMA3_LOOP = (
    "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + "
    "message['role'] + '<|end_header_id|>\\n\\n' + message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}"
    "{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}"
)
_LLAMA32 = (
    "{{- bos_token }}{%- if not date_string is defined %}{%- if strftime_now is defined %}"
    "{%- set date_string = strftime_now('%d %b %Y') %}{%- else %}{%- set date_string = '26 Jul 2024' %}{%- endif %}"
    "{%- endif %}{%- if messages[0]['role'] == 'system' %}{%- set system_message = messages[0]['content'] | trim %}"
    "{%- set messages = messages[1:] %}{%- else %}{%- set system_message = '' %}{%- endif %}"
    "{{- '<|start_header_id|>system<|end_header_id|>\\n\\nCutting Knowledge Date: December 2023\\nToday Date: ' }}"
    "{{- date_string + '\\n\\n' + system_message + '<|eot_id|>' }}{%- for message in messages %}"
    "{{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + message['content'] | trim }}"
    "{{- '<|eot_id|>' }}{%- endfor %}{%- if add_generation_prompt %}"
    "{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif %}"
)
_LLAMA2 = (
    "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}"
    "{% set system_message = messages[0]['content'] %}{% else %}{% set loop_messages = messages %}"
    "{% set system_message = false %}{% endif %}{% for message in loop_messages %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Roles must alternate') }}"
    "{% endif %}{% if loop.index0 == 0 and system_message != false %}"
    "{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}{% else %}"
    "{% set content = message['content'] %}{% endif %}{% if message['role'] == 'user' %}"
    "{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}{% else %}"
    "{{ ' ' + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}"
)
_MISTRAL = (
    "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'user' %}"
    "{{ '[INST] ' + message['content'] + ' [/INST]' }}{% elif message['role'] == 'assistant' %}"
    "{{ message['content'] + eos_token }}{% else %}{{ raise_exception('Only user and assistant roles!') }}{% endif %}"
    "{% endfor %}"
)
_GEMMA = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}{% for message in messages %}{% if (message['role'] == 'assistant') %}{% set role = 'model' %}"
    "{% else %}{% set role = message['role'] %}{% endif %}"
    "{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{'<start_of_turn>model\\n'}}{% endif %}"
)
_PHI3 = (
    "{% for message in messages %}{% if message['role'] in ['system', 'user'] %}"
    "{{'<|' + message['role'] + '|>\\n' + message['content'] + '<|end|>\\n'}}{% else %}"
    "{{'<|assistant|>\\n' + message['content'] + '<|end|>\\n'}}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% else %}{{ eos_token }}{% endif %}"
)
_PHI4 = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '<|im_sep|>' + message['content'] + "
    "'<|im_end|>'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant<|im_sep|>' }}{% endif %}"
)
_R1 = (
    "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'system' %}{{ message['content'] }}"
    "{% elif message['role'] == 'user' %}{{ '<｜User｜>' + message['content'] }}{% else %}"
    "{{ '<｜Assistant｜>' + message['content'] + '<｜end▁of▁sentence｜>' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<｜Assistant｜><think>\\n' }}{% endif %}"
)
_TULU = (
    "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'assistant' %}"
    "{{ '<|assistant|>\\n' + message['content'] + eos_token }}{% else %}"
    "{{ '<|' + message['role'] + '|>\\n' + message['content'] + '\\n' }}{% endif %}{% if loop.last and "
    "add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}{% endfor %}"
)
_GRANITE = (
    "{%- for message in messages %}<|start_of_role|>{{ message['role'] }}<|end_of_role|>{{ message['content'] }}"
    "<|end_of_text|>\n{% endfor %}{%- if add_generation_prompt %}<|start_of_role|>assistant<|end_of_role|>{%- endif %}"
)
_ZEPHYR = (
    "{% for message in messages %}\n{% if message['role'] in ['user', 'system'] %}\n"
    "{{ '<|' + message['role'] + '|>\\n' + message['content'] + eos_token }}\n{% else %}\n"
    "{{ '<|assistant|>\\n' + message['content'] + eos_token }}\n{% endif %}\n"
    "{% if loop.last and add_generation_prompt %}\n{{ '<|assistant|>' }}\n{% endif %}\n{% endfor %}"
)

_IM = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_HEADERS = ("<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>")

FAMILIES = [
    Family(
        name="smollm2",  # bos is the token that opens every turn
        template="{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
        "{{ '<|im_start|>system\\nYou are helpful<|im_end|>\\n' }}{% endif %}{% endfor %}" + _CHATML_LOOP + _CHATML_END,
        prompt="<|im_start|>system\nYou are helpful<|im_end|>\n<|im_start|>user\n" + USER + "<|im_end|>\n"
        "<|im_start|>assistant\n",
        special=_IM,
        bos="<|im_start|>",
        eos="<|im_end|>",
        system=None,
    ),
    Family(
        name="qwen2.5",
        template=_CHATML_LOOP + _CHATML_END,
        prompt=f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n{USER}<|im_end|>\n<|im_start|>assistant\n",
        special=_IM,
        eos="<|im_end|>",
    ),
    Family(
        name="qwen3",
        template=_QWEN3,
        prompt=f"<|im_start|>user\n{USER}<|im_end|>\n<|im_start|>assistant\n",
        special=_IM,
        eos="<|im_end|>",
        system=None,
        args={"enable_thinking": True},
    ),
    Family(
        name="qwen3, not thinking",
        template=_QWEN3,
        prompt=f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n{USER}<|im_end|>\n<|im_start|>assistant\n"
        "<think>\n\n</think>\n\n",
        special=_IM,
        eos="<|im_end|>",
        args={"enable_thinking": False},
    ),
    Family(
        name="llama-3",
        template=_LLAMA3_LOOP,
        prompt=f"<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\n{SYSTEM}<|eot_id|>"
        f"<|start_header_id|>user<|end_header_id|>\n\n{USER}<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
        special=_HEADERS,
        bos="<|begin_of_text|>",
        eos="<|eot_id|>",
        adds_bos=True,
    ),
    Family(
        name="llama-3.2",
        template=_LLAMA32,
        prompt="<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\n"
        f"Today Date: 26 Jul 2024\n\n{SYSTEM}<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n{USER}<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n",
        special=_HEADERS,
        bos="<|begin_of_text|>",
        eos="<|eot_id|>",
        adds_bos=True,
    ),
    Family(
        name="llama-2",
        template=_LLAMA2,
        prompt=f"<s>[INST] <<SYS>>\n{SYSTEM}\n<</SYS>>\n\n{USER} [/INST]",
        special=("<s>", "</s>"),
        bos="<s>",
        eos="</s>",
        adds_bos=True,
    ),
    Family(
        name="mistral",
        template=_MISTRAL,
        prompt=f"<s>[INST] {USER} [/INST]",
        special=("<s>", "</s>", "[INST]", "[/INST]"),
        bos="<s>",
        eos="</s>",
        adds_bos=True,
        system=None,
    ),
    Family(
        name="gemma-2",
        template=_GEMMA,
        prompt=f"<bos><start_of_turn>user\n{USER}<end_of_turn>\n<start_of_turn>model\n",
        special=("<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"),
        bos="<bos>",
        eos="<eos>",
        adds_bos=True,
        system=None,
    ),
    Family(
        name="phi-3",
        template=_PHI3,
        prompt=f"<|system|>\n{SYSTEM}<|end|>\n<|user|>\n{USER}<|end|>\n<|assistant|>\n",
        special=("<s>", "<|endoftext|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>"),
        bos="<s>",
        eos="<|endoftext|>",
    ),
    Family(
        name="phi-4",
        template=_PHI4,
        prompt=f"<|im_start|>system<|im_sep|>{SYSTEM}<|im_end|><|im_start|>user<|im_sep|>{USER}<|im_end|>"
        "<|im_start|>assistant<|im_sep|>",
        special=(*_IM, "<|im_sep|>"),
        bos="<|endoftext|>",
        eos="<|im_end|>",
    ),
    Family(
        name="deepseek-r1",
        template=_R1,
        prompt=f"<｜begin▁of▁sentence｜>{SYSTEM}<｜User｜>{USER}<｜Assistant｜><think>\n",
        special=("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>"),
        bos="<｜begin▁of▁sentence｜>",
        eos="<｜end▁of▁sentence｜>",
        adds_bos=True,
        opens_thinking=True,
    ),
    Family(
        name="olmo-2",
        template=_TULU,
        prompt=f"<|endoftext|><|system|>\n{SYSTEM}\n<|user|>\n{USER}\n<|assistant|>\n",
        special=("<|endoftext|>",),
        bos="<|endoftext|>",
        eos="<|endoftext|>",
    ),
    Family(
        name="granite",
        template=_GRANITE,
        prompt=f"<|start_of_role|>system<|end_of_role|>{SYSTEM}<|end_of_text|>\n<|start_of_role|>user<|end_of_role|>"
        f"{USER}<|end_of_text|>\n<|start_of_role|>assistant<|end_of_role|>",
        special=("<|end_of_text|>", "<|start_of_role|>", "<|end_of_role|>"),
        bos="<|end_of_text|>",
        eos="<|end_of_text|>",
    ),
    Family(
        name="zephyr",
        template=_ZEPHYR,
        prompt=f"<|system|>\n{SYSTEM}</s>\n<|user|>\n{USER}</s>\n<|assistant|>\n",
        special=("<s>", "</s>"),
        bos="<s>",
        eos="</s>",
    ),
]
