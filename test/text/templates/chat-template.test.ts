import { expect, it } from 'vitest';
import { ChatTemplate } from '../../../src/text/templates/chat-template.ts';

it('states the same date every day, so that an episode is read again as it was', () => {
  const dates = "{{ strftime_now('%d %b %Y') }}|{{ strftime_now('%Y-%m-%d') }}|{{ strftime_now('%B %-d, %Y %H:%M') }}";
  const template = new ChatTemplate(`{%- if strftime_now is defined %}${dates}{%- endif %}`, {}, 'here');
  expect(template.render([])).toBe('26 Jul 2024|2024-07-26|July 26, 2024 12:00');
  expect(new ChatTemplate('{{ strftime_now is defined }}', {}, 'here').render([])).toBe('true');
});
