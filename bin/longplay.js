#!/usr/bin/env node
/**
 * Launcher of the command line. It is there before the first build: npm remembers a command whose file was missing as
 * not found, and a checkout that has not been built can say so.
 */
import { existsSync } from 'node:fs';

const main = new URL('../dist/src/cli/main.js', import.meta.url);
if (existsSync(main)) await import(main.href);
else {
  process.stderr.write('longplay: this checkout has not been built: run npm ci && npm run build, then this again\n');
  process.exitCode = 2;
}
