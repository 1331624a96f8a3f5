/** Domains of the world, by name. */

import { airline } from './airline/domain.ts';
import type { Domain } from './domain.ts';
import { mock } from './mock/domain.ts';
import { retail } from './retail/domain.ts';
import { telecom, telecomWorkflow } from './telecom/domain.ts';

export const DOMAINS: Readonly<Record<string, Domain>> = {
  retail,
  airline,
  telecom,
  'telecom-workflow': telecomWorkflow,
  mock,
};
