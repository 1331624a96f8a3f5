/**
 * Plain-text chat templates, for servers that only complete text. Where the server knows its model's template, use chat
 * completions and leave this to it.
 */
import type { Message } from '../prompts/conversation.ts';

export type TemplateId = 'plain' | 'chatml' | 'llama3';

interface ChatTemplate {
  /** Message in the template's form. */
  message(message: Message): string;
  /** Opening that the model continues. */
  readonly opening: string;
  /** Texts that end its answer. */
  readonly stop: readonly string[];
}

const TITLES = { system: 'System', user: 'User', assistant: 'Assistant' } as const;

const TEMPLATES: Readonly<Record<TemplateId, ChatTemplate>> = {
  plain: {
    message: ({ role, content }) => `### ${TITLES[role]}\n${content}\n\n`,
    opening: '### Assistant\n',
    stop: ['\n### User', '\n### System', '\n### Assistant'],
  },
  chatml: {
    message: ({ role, content }) => `<|im_start|>${role}\n${content}<|im_end|>\n`,
    opening: '<|im_start|>assistant\n',
    stop: ['<|im_end|>'],
  },
  llama3: {
    message: ({ role, content }) => `<|start_header_id|>${role}<|end_header_id|>\n\n${content}<|eot_id|>`,
    opening: '<|start_header_id|>assistant<|end_header_id|>\n\n',
    stop: ['<|eot_id|>'],
  },
};

/**
 * Renders a conversation: the prompt that the model's next answer continues, and the strings at which that answer ends.
 */
export function renderChat(
  template: TemplateId,
  messages: readonly Message[],
): { readonly prompt: string; readonly stop: readonly string[] } {
  const { message, opening, stop } = TEMPLATES[template];
  return { prompt: messages.map(message).join('') + opening, stop };
}
