/** Chat templates with the ways in which families differ about tools, over the special tokens of the tiny chat model. */

const OPENING = "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}";

/** Tools in the system message, calls in tags, results of a turn in one message of the user; earlier reasoning is dropped. */
const hermes =
  "{%- if tools %}{{- '<|im_start|>system\\n' }}" +
  "{%- if messages[0].role == 'system' %}{{- messages[0].content + '\\n\\n' }}{%- endif %}" +
  "{{- '# Tools\\n<tools>' }}{%- for tool in tools %}{{- '\\n' + (tool | tojson) }}{%- endfor %}" +
  "{{- '\\n</tools><|im_end|>\\n' }}" +
  "{%- elif messages[0].role == 'system' %}{{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}{%- endif %}" +
  '{%- for message in messages %}' +
  "{%- if message.role == 'user' or (message.role == 'system' and not loop.first) %}" +
  "{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}" +
  "{%- elif message.role == 'assistant' %}{{- '<|im_start|>assistant\\n' }}" +
  "{%- set content = message.content.split('</think>')[-1].lstrip('\\n') if '</think>' in message.content else message.content %}" +
  '{{- content }}' +
  "{%- for call in message.tool_calls or [] %}{%- if not loop.first or content %}{{- '\\n' }}{%- endif %}" +
  '{{- \'<tool_call>\\n{"name": "\' + call.function.name + \'", "arguments": \' }}{{- call.function.arguments | tojson }}' +
  "{{- '}\\n</tool_call>' }}{%- endfor %}{{- '<|im_end|>\\n' }}" +
  "{%- elif message.role == 'tool' %}" +
  "{%- if loop.first or messages[loop.index0 - 1].role != 'tool' %}{{- '<|im_start|>user' }}{%- endif %}" +
  "{{- '\\n<tool_response>\\n' + message.content + '\\n</tool_response>' }}" +
  "{%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}{{- '<|im_end|>\\n' }}{%- endif %}" +
  `{%- endif %}{%- endfor %}${OPENING}`;

/** The same, with the reasoning of the newest turn in a block that the reply opens. */
const thinking = hermes.replace(
  '{{- content }}',
  "{%- if message.reasoning_content and loop.last %}{{- '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' }}{%- endif %}{{- content }}",
);

/** The same, with a block that is open before the reply. */
const opening = `${thinking}{%- if add_generation_prompt %}{{- '<think>\\n' }}{%- endif %}`;

/** Tools in the first message of the user, one call a turn, which is then all of it; results as JSON texts; no line ends. */
const llama =
  "{%- if messages[0].role == 'system' %}{{- '<|im_start|>system\\n\\n' + messages[0].content + '<|im_end|>' }}" +
  '{%- set messages = messages[1:] %}{%- endif %}' +
  '{%- for message in messages %}' +
  "{%- if message.content == 'RAISE' %}{{- raise_exception('no raising here') }}{%- endif %}" +
  "{%- if message.role == 'tool' %}{{- '<|im_start|>ipython\\n\\n' + (message.content | tojson) + '<|im_end|>' }}" +
  '{%- elif message.tool_calls %}' +
  "{%- if message.tool_calls | length > 1 %}{{- raise_exception('single tool-calls only') }}{%- endif %}" +
  '{{- \'<|im_start|>assistant\\n\\n{"name": "\' + message.tool_calls[0].function.name + \'", \' }}' +
  "{{- '\"parameters\": ' }}{{- message.tool_calls[0].function.arguments | tojson }}{{- '}<|im_end|>' }}" +
  "{%- else %}{{- '<|im_start|>' + message.role + '\\n\\n' }}" +
  "{%- if loop.first and tools %}{{- 'Functions:\\n' }}{%- for tool in tools %}{{- tool | tojson(indent=4) }}{{- '\\n\\n' }}" +
  '{%- endfor %}{%- endif %}' +
  "{{- message.content.strip() + '<|im_end|>' }}{%- endif %}{%- endfor %}" +
  "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n\\n' }}{%- endif %}";

/** No tools at all. */
const plain =
  "{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}" +
  `{%- endfor %}${OPENING}`;

/** No tools, no system's role, and turns that alternate. */
const strict =
  '{%- for message in messages %}' +
  "{%- if message.role == 'system' %}{{- raise_exception('System role not supported') }}{%- endif %}" +
  "{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}" +
  `{%- endfor %}${OPENING}`;

export const AGENT_TEMPLATES = { hermes, llama, plain, strict } as const;
/** Templates that render the reasoning of the newest turn. */
export const THINKING_TEMPLATES = { thinking, opening } as const;
