#!/usr/bin/env node
/** Entry of the command line. */
import { commandLine } from './program.ts';

const program = await commandLine(process.argv[2]);
await program.parseAsync();
