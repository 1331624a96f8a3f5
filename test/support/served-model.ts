/** What a policy server has to know of a small model of TextCraft; no weights stand behind it. */
import { view } from '../../envs/textcraft/view.ts';
import type { ServedModelOptions } from '../../src/serve/policy-server.ts';
import { ViewCodec } from '../../src/text/reading/view-codec.ts';

export const servedModel: ServedModelOptions = {
  name: 'm',
  codec: new ViewCodec(view),
  decoder: 'choice',
  maxTokens: 8,
  maxPositions: 512,
  version: 3,
  created: 0,
  world: { role: 'You play.', forms: [], hints: [], format: 'react' },
};
