#!/usr/bin/env node
/** Entry of the command line. */
import { commandLine } from './program.ts';

await commandLine().parseAsync();
