/** Codec of a world, as every reader of its episodes has to open it. */
import type { World } from '../core/world.ts';
import type { Codec } from './codec.ts';
import { defaultView } from './default-view.ts';
import { ViewCodec } from './view-codec.ts';

/** View codec of a world's own view, or of the default one. */
export function codecOf({ view }: Pick<World, 'view'>): Codec {
  return new ViewCodec(view ?? defaultView);
}
