import { vi } from 'vitest';
import { placementLaws } from './laws.ts';

vi.setConfig({ testTimeout: 30_000 }); // threads start slowly on a busy machine

placementLaws('local');
placementLaws('serial');
placementLaws('thread');
