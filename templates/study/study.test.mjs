// Run: node --test
import assert from 'node:assert/strict';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { arms, runStudy } from './study.mjs';

test('both arms are trained at a hundredth of the budget, and compared', () => {
  const compared = runStudy({ seeds: 1, envSteps: 40, runs: mkdtempSync(join(tmpdir(), 'study-')) });
  const text = JSON.stringify(compared);
  for (const arm of Object.keys(arms)) assert.ok(text.includes(arm));
});
