import { placementLaws } from './laws.ts';

placementLaws('local');
placementLaws('serial');
placementLaws('thread');
