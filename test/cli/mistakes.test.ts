/**
 * Mistakes that people make at the command line, at least two for each command and of each kind: one line with what
 * to do, exit code 2, nothing left behind. Those that start a process or a thread first are typed into a process.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { examples } from '../../src/cli/examples.ts';
import { commandLine } from '../../src/cli/program.ts';
import { packageRoot } from '../../src/runtime/module-url.ts';
import { TraceFiles } from '../../src/storage/trace-files.ts';
import { longplay } from '../support/longplay-command.ts';
import { makePolicyRun } from '../support/policy-run.ts';
import { temporaryFolder } from '../support/small-run.ts';
import { trajectoryOf } from '../support/traces.ts';
import { typed } from '../support/typed.ts';

type Kind =
  | 'misspelt'
  | 'absent'
  | 'wrong type'
  | 'out of range'
  | 'wrong file'
  | 'read-only'
  | 'taken'
  | 'contradiction';

const quickstart = fileURLToPath(new URL('experiments/quickstart.yaml', packageRoot));
const serial = fileURLToPath(new URL('experiments/serial.yaml', packageRoot));
const folder = temporaryFolder('mistakes');
const runs = join(folder, 'runs');
const file = (name: string, text: string | Uint8Array = '') => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};
const broken = file('broken.yaml', 'env: [\n');
const empty = file('empty.yaml', '# nothing yet\n');
const noEnv = file('no-env.yaml', 'horizon: { type: fixed, rounds: 3 }\nstop: { updates: 1 }\n');
const several = (more = '', first = '') =>
  `worlds:\n  - { env: { id: textcraft }, horizon: { type: fixed, rounds: 3 }${first} }\n  - { env: { id: babyai }, horizon: { type: fixed, rounds: 3 } }\nstop: { updates: 1 }\n${more}`;
const mixed = file('mixed.yaml', several());
const bothForms = file('both.yaml', several('env: { id: textcraft }\n'));
const sameName = file('same.yaml', several().replace('babyai', 'textcraft'));
const noWeights = file('no-weights.yaml', several('', ', weight: 0').replace('babyai }', 'babyai }, weight: 0'));
const mixedRun = join(folder, 'mixed-run');
mkdirSync(mixedRun);
writeFileSync(join(mixedRun, 'config.yaml'), several());
const binary = file(
  'binary.yaml',
  Uint8Array.from({ length: 400 }, (_, i) => i % 256),
);
const level = (i: number) => `x${i + 1}: &x${i + 1} [*x${i}, *x${i}, *x${i}]\n`;
const bomb = file('bomb.yaml', `x0: &x0 [1, 1]\n${Array.from({ length: 30 }, (_, i) => level(i)).join('')}`);
const circle = file('circle.yaml', 'tasks: &a { labels: *a }\n');
const noWorld = file('no-world.mjs', 'export const answer = 42;\n');
const syntax = file('syntax.mjs', 'export const = 1;\n');
const corpus = file('corpus.jsonl', '{"id": "1", "contents": "A title\\nsome text"}\n');
const chatLog = file(
  'chat.jsonl',
  '{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}\n',
);
const noCorpus = file('no-corpus.jsonl', 'not json\n');
const noTrace = file('no-trace.jsonl', '{"format": 1}\n');
const trained = join(folder, 'trained');
const traces = join(folder, 'traces');
/** Folder where no user can write, not even root. */
const READ_ONLY = '/sys/nowhere';
let usedPort = 0;
let blocker: Server;

beforeAll(async () => {
  await makePolicyRun(trained, 'textcraft', ['policy.model={hiddenSize: 16, layers: 1, heads: 2}']);
  const writer = new TraceFiles({ dir: traces, config: {}, rotateBytes: 1e9, keepBytes: 1e12 });
  writer.episodes([trajectoryOf()], 'train', 'toy');
  writer.close();
  blocker = createServer();
  await new Promise<void>((resolve) => blocker.listen(0, '127.0.0.1', resolve));
  usedPort = (blocker.address() as AddressInfo).port;
});
afterAll(() => {
  blocker?.close();
  rmSync(folder, { recursive: true, force: true });
});

const curious = fileURLToPath(new URL('dist/test/support/curious-env.js', packageRoot));
const train = (...set: string[]) => ['train', quickstart, '--runs', runs, ...set.flatMap((one) => ['--set', one])];
const rollout = (...more: string[]) => ['rollout', '--env', 'textcraft', '--runs', runs, ...more];
const sft = (...more: string[]) => ['sft', quickstart, '--runs', runs, ...more];
const goOn = (...more: string[]) => ['replay', traces, '--from-turn', '0', '--policy', 'random', ...more];
const proposer = ['--proposer-url', 'http://127.0.0.1:9/v1', '--proposer-model', 'm'];
const search = (...more: string[]) => ['optimize-prompt', serial, ...proposer, '--out', join(runs, 's'), ...more];
const dpo = (...more: string[]) => ['dpo', quickstart, '--runs', runs, ...more];

/** Mistakes: kind, what was typed, what is printed. */
const MISTAKES: readonly (readonly [Kind, () => readonly string[], RegExp])[] = [
  ['misspelt', () => ['trian'], /unknown command 'trian'.*Did you mean train\?/],
  ['misspelt', () => ['--versoin'], /unknown option '--versoin'.*--version/],
  ['absent', () => ['train'], /train: give either a configuration file, or --resume <run>/],
  ['contradiction', () => ['train', quickstart, '--resume', trained], /give either a configuration file, or --resume/],
  ['misspelt', () => train('learner.maxLg=1'), /unknown key 'learner\.maxLg'; did you mean 'maxLag'\?/],
  ['misspelt', () => train('lerner.maxLag=1'), /unknown key 'lerner'; did you mean 'learner'\?/],
  [
    'misspelt',
    () => train('learner.estimator.algorithm=gpro'),
    /expected one of grpo, .*did you mean learner\.estimator\.algorithm=grpo\?/,
  ],
  ['wrong type', () => train('learner.estimator=grpo'), /did you mean learner\.estimator=\{algorithm: grpo\}\?/],
  [
    'misspelt',
    () => train('learner.estimator.gama=0.9'),
    /unknown key 'learner\.estimator\.gama'; did you mean 'gamma'\?/,
  ],
  ['misspelt', () => train('policy.decoder=choise'), /policy\.decoder: .*did you mean choice\?/],
  ['misspelt', () => train('engine.name=onnxruntime'), /engine\.name: .*did you mean onnxruntime-node\?/],
  [
    'misspelt',
    () => train('horizon={type: scaling_inter, rounds: [8], steps_scaling_inter: 5}'),
    /horizon\.type: expected one of fixed, .*did you mean horizon\.type=scaling_inter_stepwise\?/,
  ],
  ['wrong type', () => train('horizon=8'), /horizon\.type: expected one of fixed, .*got 8/],
  ['wrong type', () => train('evaluation.horizons=24'), /evaluation\.horizons: .*did you mean \[24\]\?/],
  ['wrong type', () => train('evaluation.greedy="yes"'), /evaluation\.greedy: .*did you mean true\?/],
  ['wrong type', () => train('seed=seven'), /seed: .*expected number.*got "seven"/],
  ['wrong type', () => train('learner'), /--set learner: expected key=value/],
  ['wrong type', () => train('learner=[1, 2'), /--set learner=\[1, 2: not valid YAML/],
  ['out of range', () => train('rollout.envThreads=0'), /rollout\.envThreads: .*>=1 \(got 0\)/],
  ['out of range', () => train('rollout.envThreads=1000000'), /rollout\.envThreads: .*<=256 \(got 1000000\)/],
  ['out of range', () => train('horizon={type: fixed, rounds: 0}'), /horizon\.rounds: .*>=1 \(got 0\)/],
  ['out of range', () => train('policy.model.heads=3'), /policy\.model\.heads|heads/],
  ['wrong type', () => train('env=textcraft'), /env: expected keys and values.*did you mean env\.id=textcraft\?/],
  ['wrong type', () => train('engine=cuda'), /engine: .*did you mean engine\.device=cuda\?/],
  ['wrong type', () => train('stop=5'), /stop: expected keys and values \(updates, minutes, envSteps\), got 5/],
  [
    'wrong type',
    () => train('evaluation.tasks=3'),
    /evaluation\.tasks: expected string or array .*did you mean \[3\]\?/,
  ],
  ['wrong type', () => train('stop={updates:10}'), /a space belongs after the colon: 'updates: 10'/],
  ['misspelt', () => train('learner.gamma=0.9'), /did you mean 'learner\.estimator\.gamma'\?/],
  [
    'misspelt',
    () => train('lr=0.001'),
    /unknown key 'lr'; did you mean 'learner\.learningRate' or 'engine\.learnerReplicas' or 'warmStart\.learningRate'\?/,
  ],
  ['misspelt', () => train('learner.estimator={type: rloo}'), /'learner\.estimator\.type'; did you mean 'algorithm'\?/],
  ['misspelt', () => train('zzz=1'), /unknown key 'zzz'; known here: seed, env, agent, tasks/],
  [
    'misspelt',
    () => train('rollout.topP=0.9'),
    /unknown key 'rollout\.topP'; did you mean 'evaluation\.sampling\.topP'/,
  ],
  [
    'contradiction',
    () => train('learner.estimator.lambda=0.9'),
    /'learner\.estimator\.lambda'; it belongs to learner\.estimator\.algorithm=ppo/,
  ],
  ['contradiction', () => ['train', '--resume', trained, '--name', 'x'], /train: --name: a run that goes on stays/],
  [
    'contradiction',
    () => ['rollout', '--resume', trained, '--episodes', '9'],
    /rollout: --episodes: .*as it was begun/,
  ],
  ['contradiction', () => ['view', traces, '--episodes', '3'], /view: --episodes: .*needs --out/],
  ['contradiction', () => ['doctor', '--quantize', 'int8'], /doctor: --quantize: it needs --model/],
  [
    'contradiction',
    () => ['export', trained, '--to', 'hf', '--success', '--out', join(folder, 'x')],
    /export: --success: .*--to writes a model/,
  ],
  [
    'contradiction',
    () => ['export', trained, '--to', 'hf', '--type', 'f16', '--out', join(folder, 'x')],
    /export: --type: .*use --to gguf/,
  ],
  [
    'contradiction',
    () => ['export', trained, '--out', join(folder, 'x.gguf')],
    /its ending names a model; use --to gguf/,
  ],
  ['wrong file', () => ['export', traces, '--format', 'chatml', '--out', '-'], /--out -: expected a file/],
  ['contradiction', () => ['serve-retriever', corpus, '--corpus', corpus], /is a corpus itself/],
  ['misspelt', () => ['help', 'trian'], /unknown command 'trian'/],
  ['absent', () => train('env.id=~/nowhere.mjs'), /there is no module at (?!.*~).*nowhere\.mjs/],
  ['absent', () => train('env.id=elephant'), /unknown env 'elephant'; Known: /],
  ['misspelt', () => train('env.id=textcrft'), /unknown env 'textcrft'; did you mean 'textcraft'\?/],
  ['misspelt', () => train('env.options={fidelty: original}'), /fidelty/],
  ['absent', () => train('tasks.labels=[deep]'), /'deep' is no label of textcraft/],
  ['absent', () => train('evaluation.tasks=held-out'), /textcraft has no set 'held-out'/],
  [
    'contradiction',
    () => train('learner.oversampling=3', 'learner.filterGroups=false'),
    /learner\.oversampling: nothing is left out, so nothing is replaced/,
  ],
  ['contradiction', () => [...train('stop={minutes: 1}'), '--serial'], /stop\.minutes: a serial run has no wall clock/],
  ['contradiction', () => [...train(), '--record-order', 'a', '--replay-order', 'b'], /give one of them/],
  ['absent', () => ['train', '/nowhere/x.yaml', '--runs', runs], /cannot read \/nowhere\/x\.yaml/],
  [
    'wrong type',
    () => ['train', '--set', 'seed=1', 'stop.updates=2', '--runs', runs],
    /cannot read stop\.updates=2: .*--set/,
  ],
  ['wrong file', () => ['train', broken, '--runs', runs], /broken\.yaml: not valid YAML/],
  [
    'wrong file',
    () => ['train', empty, '--runs', runs],
    /empty\.yaml: it is empty; give at least .*horizon: \{ type: fixed/,
  ],
  ['absent', () => ['train', noEnv, '--runs', runs], /no-env\.yaml: env: must be given: keys and values \(id, options/],
  ['contradiction', () => ['train', bothForms, '--runs', runs], /both\.yaml: worlds: .* got both: env; move it into/],
  ['taken', () => ['train', sameName, '--runs', runs], /worlds\.1\.name: 'textcraft' is the name of worlds\.0 already/],
  ['out of range', () => ['train', noWeights, '--runs', runs], /worlds: every weight is 0 from update 0 on/],
  [
    'misspelt',
    () => ['train', mixed, '--runs', runs, '--set', 'worlds.1.horizn={}'],
    /unknown key 'worlds\.1\.horizn'; did you mean 'horizon'/,
  ],
  [
    'absent',
    () => ['train', mixed, '--runs', runs, '--set', 'worlds.1.env.id=babyia', '--set', 'worlds.1.name=b'],
    /unknown env 'babyia'; did you mean 'babyai'/,
  ],
  [
    'contradiction',
    () => ['train', mixed, '--runs', runs, '--set', 'policy={kind: checkpoint, path: ./m}'],
    /policy\.kind: several worlds are played by 'local' or 'random', got 'checkpoint'/,
  ],
  [
    'contradiction',
    () => ['train', mixed, '--runs', runs, '--cluster', 'nats://127.0.0.1:1'],
    /--cluster: it takes a run of one world.*\(textcraft, babyai\)/,
  ],
  [
    'contradiction',
    () => ['rollout', '--policy', mixedRun, '--runs', runs, '--episodes', '1'],
    /rollout: it takes a run of one world, and this one has several \(textcraft, babyai\)/,
  ],
  ['contradiction', () => ['serve-policy', mixedRun], /serve-policy: it takes a run of one world/],
  ['contradiction', () => ['eval', mixedRun, '--tasks', 'test'], /--tasks names tasks of one world/],
  ['contradiction', () => ['sft', mixed, '--data', noTrace, '--runs', runs], /sft: it takes a run of one world/],
  ['wrong type', () => train('engine.device=gpu'), /engine\.device: .*did you mean webgpu\?/],
  ['misspelt', () => ['eval', trained, '--split', 'validation'], /--split.*Expected train or test\.$/],
  ['wrong file', () => ['train', binary, '--runs', runs], /binary\.yaml: /],
  ['wrong file', () => ['train', folder, '--runs', runs], /cannot read .*: expected a file, found a folder/],
  ['wrong file', () => ['train', '--resume', folder], /is no run: it has no config\.yaml/],
  ['wrong file', () => train('policy.init=/etc/passwd'), /passwd.*expected a folder of checkpoints/],
  ['wrong type', () => train('__proto__.x=1'), /there is no key '__proto__'/],
  ['absent', () => train('env.id=constructor'), /unknown env 'constructor'/],
  ['absent', () => train('env.id=toString'), /unknown env 'toString'/],
  ['absent', () => train('env.id=__proto__'), /unknown env '__proto__'/],
  ['out of range', () => train('policy.model.hiddenSize=1e9'), /policy\.model\.hiddenSize/],
  ['out of range', () => train('evaluation.episodesPerTask=1e8'), /evaluation\.episodesPerTask/],
  ['out of range', () => train('evaluation.episodesPerTask=100000'), /make \d+ episodes; at most/],
  ['wrong file', () => ['train', bomb, '--runs', runs], /aliases cannot be followed/],
  ['wrong file', () => ['train', circle, '--runs', runs], /aliases cannot be followed/],
  ['absent', () => train('policy.init=/nowhere'), /\/nowhere.*no checkpoint/],
  [
    'absent',
    () => train('learner.distillation={teacher: {type: run, path: /nowhere}}'),
    /learner\.distillation\.teacher\.path: \/nowhere is no run/,
  ],
  [
    'misspelt',
    () => train('learner.distillation={teacher: {type: runs, path: a}}'),
    /learner\.distillation\.teacher\.type: expected one of run, server, ema .*did you mean .*run/,
  ],
  ['contradiction', () => train('learner.observationCoef=0.1'), /the local policy reads a view whole/],
  ['read-only', () => ['train', quickstart, '--runs', '/dev/null/runs'], /cannot make the run folder/],
  [
    'read-only',
    () => ['train', quickstart, '--runs', READ_ONLY],
    /cannot make the run folder .*choose another place with --runs/,
  ],
  ['read-only', () => ['train', quickstart, '--runs', '/proc/x'], /cannot make the run folder \/proc\/x/],
  [
    'out of range',
    () => [...train(), '--name', '../elsewhere'],
    /--name '\.\.\/elsewhere': expected a name without slashes/,
  ],
  ['misspelt', () => [...train(), '--chaos', 'kil=0.1'], /kil/],
  ['misspelt', () => ['train', quickstart, '--sed', '3'], /unknown option '--sed'.*--set/],

  ['absent', () => ['preflight'], /missing required argument 'config'/],
  ['absent', () => ['preflight', '/nowhere/x.yaml'], /cannot read \/nowhere\/x\.yaml/],
  ['wrong file', () => ['preflight', broken], /broken\.yaml: not valid YAML/],
  ['out of range', () => ['preflight', quickstart, '--minutes', '0'], /--minutes.*Expected a number above 0/],
  ['out of range', () => ['preflight', quickstart, '--minutes', '1e9'], /--minutes: expected at most 35791/],
  ['misspelt', () => ['preflight', quickstart, '--hardware', 'h10'], /--hardware.*did you mean h100\?/],
  ['contradiction', () => ['preflight', quickstart, '--price', '2'], /--price: it needs --hardware/],
  [
    'out of range',
    () => ['preflight', quickstart, '--hardware', 'h100', '--utilisation', '0'],
    /--utilisation: expected a number above 0/,
  ],
  ['absent', () => ['preflight', quickstart, '--set', 'env.id=textcrft'], /did you mean 'textcraft'\?/],
  ['absent', () => ['preflight', quickstart, '--set', 'tasks.labels=[deep]'], /'deep' is no label of textcraft/],
  [
    'read-only',
    () => ['preflight', quickstart, '--out', join(READ_ONLY, 'x.json')],
    /cannot write \/sys\/nowhere\/x\.json/,
  ],

  ['absent', () => ['eval', '/nowhere'], /no such run/],
  ['misspelt', () => ['eval', trained, '--split', 'tets'], /--split.*Expected train or test; did you mean test\?/],
  ['out of range', () => ['eval', trained, '--episodes', '0'], /--episodes.*Expected a whole number of at least 1/],
  ['wrong type', () => ['eval', trained, '--horizon', '8,many'], /--horizon.*Expected a whole number of at least 1/],
  ['wrong file', () => ['eval', quickstart], /policy that has to be trained first; give the run's folder/],

  ['absent', () => ['rollout', '--runs', runs], /name the world: --env textcraft/],
  [
    'misspelt',
    () => ['rollout', '--env', 'textcrat', '--runs', runs],
    /unknown env 'textcrat'; did you mean 'textcraft'\?/,
  ],
  ['out of range', () => rollout('--episodes', '-1'), /--episodes.*Expected a whole number from 1 to/],
  ['out of range', () => rollout('--temperature', '-1'), /--temperature.*Expected a number of at least 0/],
  ['misspelt', () => rollout('--split', 'trian'), /--split.*did you mean train\?/],
  ['contradiction', () => rollout('--split', 'test', '--tasks', 'selection'), /--split: --tasks names what to play/],
  [
    'contradiction',
    () => rollout('--set', 'tasks.set=selection'),
    /tasks\.set is for training; give --tasks or --split/,
  ],
  ['contradiction', () => rollout('--set', 'horizon.rounds=9'), /horizon\.rounds is for training; give --horizon/],
  [
    'absent',
    () => rollout('--policy', 'random', '--tasks', 'nowhere'),
    /tasks: textcraft has no set 'nowhere'; it has/,
  ],
  ['absent', () => rollout('--policy', '/nowhere'), /\/nowhere is no run/],
  [
    'absent',
    () => ['rollout', '--policy', 'oracle', '--env', curious, '--runs', runs],
    /policy\.kind: oracle: this world has no oracle/,
  ],
  ['wrong type', () => rollout('--base-url', 'ftp://here', '--model', 'm'), /'ftp:\/\/here': expected http or https/],
  ['wrong file', () => ['rollout', '--resume', trained], /is no rollout: it has no rollout\.json/],
  ['out of range', () => rollout('--name', 'a/b'), /--name 'a\/b': expected a name without slashes/],
  [
    'absent',
    () => rollout('--base-url', 'http://127.0.0.1:9', '--model', 'm'),
    /does not answer: .*is the server running\?/,
  ],

  ['misspelt', () => ['play', 'babyay'], /did you mean 'babyai'\?/],
  ['out of range', () => ['play', 'babyai', '--task', '99999'], /--task 99999: babyai has tasks 0 to 39999/],
  ['wrong type', () => ['play', 'babyai', '--horizon', 'long'], /--horizon.*Expected a whole number of at least 1/],
  ['absent', () => ['play'], /missing required argument 'env'/],
  ['wrong file', () => ['play', noWorld], /createEnv/],

  ['absent', () => ['replay', '/nowhere'], /\/nowhere/],
  ['wrong file', () => ['replay', noTrace], /no-trace\.jsonl/],
  ['absent', () => ['replay', traces, '--episode', '999'], /has no episode 999; it holds 1/],
  ['misspelt', () => ['replay', traces, '--chek'], /unknown option '--chek'.*--check/],

  ['contradiction', () => ['replay', traces, '--policy', 'random'], /--policy: .*give --from-turn <k> or --every-turn/],
  ['contradiction', () => goOn('--check'), /--check: a continuation is checked anyway/],
  ['contradiction', () => goOn('--every-turn'), /--every-turn: --from-turn names one/],
  ['contradiction', () => goOn('--temperature', '0', '--group', '4'), /--temperature 0 plays one and the same/],
  ['contradiction', () => goOn('--policy', trained), /was trained on textcraft, not on toy/],
  ['absent', () => ['replay', traces, '--from-turn', '0'], /name who plays on: --policy openai, random, oracle, or/],
  ['absent', () => goOn('--policy', '/nowhere'), /\/nowhere is no run/],
  ['absent', () => goOn(), /unknown env 'toy'/],
  ['wrong type', () => goOn('--env', 'textcraft'), /the episode is of toy, and the world is textcraft/],
  [
    'out of range',
    () => ['replay', traces, '--from-turn', '2', '--policy', 'random'],
    /goes not so far: .*0 to 1 of them/,
  ],
  ['out of range', () => goOn('--group', '0'), /--group.*Expected a whole number from 1 to/],
  ['taken', () => goOn('--out', folder), /--out .* exists already; name a new folder/],

  ['absent', () => ['rescore', traces], /required option '--verify <module>' not specified/],
  ['absent', () => ['rescore', '/nowhere', '--verify', noWorld], /\/nowhere/],
  ['absent', () => ['rescore', traces, '--verify', './nowhere.mjs'], /--verify \.\/nowhere\.mjs: expected a module/],
  [
    'absent',
    () => ['rescore', traces, '--verify', noWorld, '--purpose', 'x'],
    /no episode matches; it holds 1 of purpose/,
  ],
  ['wrong file', () => ['rescore', quickstart, '--verify', noWorld], /quickstart\.yaml/],
  ['misspelt', () => ['rescore', traces, '--verify', noWorld, '--purpse', 'x'], /unknown option '--purpse'.*--purpose/],
  ['misspelt', () => ['rescore', traces, '--verify', noWorld, '--by', 'lable'], /--by.*did you mean label\?/],
  ['out of range', () => ['rescore', traces, '--verify', noWorld, '--limit', '0'], /--limit.*whole number from 1/],
  ['taken', () => ['rescore', traces, '--verify', noWorld, '--out', folder], /--out .* exists already; name a new/],

  ['absent', () => ['optimize-prompt'], /optimize-prompt: give a configuration, or --resume <folder>/],
  ['absent', () => ['optimize-prompt', serial], /--proposer-url and --proposer-model name the model that writes/],
  ['absent', () => ['optimize-prompt', serial, ...proposer], /--out <folder>: name a new folder/],
  ['wrong file', () => ['optimize-prompt', '--resume', trained], /is no search of prompts: it has no search\.jsonl/],
  ['wrong type', () => search('--proposer-url', 'here'), /chat model\.url: expected a URL|url: expected a URL/],
  ['contradiction', () => search(), /policy\.kind 'local' reads no prompt; use openai, checkpoint or server/],
  [
    'contradiction',
    () => ['optimize-prompt', '--resume', trained, '--budget', '9'],
    /--budget: a search goes on as it was/,
  ],
  ['contradiction', () => ['optimize-prompt', serial, '--resume', trained], /--resume has its own configuration/],
  ['out of range', () => search('--held-out', '1'), /--held-out.*Expected a whole number from 2 to/],
  ['misspelt', () => search('--bugdet', '100'), /unknown option '--bugdet'.*--budget/],

  ['absent', () => ['compare', '/nowhere', trained], /\/nowhere is no run/],
  ['contradiction', () => ['compare', trained, trained], /has no results to compare/],
  ['misspelt', () => ['compare', trained, '--plott', 'x.svg'], /unknown option '--plott'.*--plot/],
  ['absent', () => ['view', '/nowhere'], /\/nowhere/],
  ['out of range', () => ['view', traces, '--port', '99999'], /--port.*Expected a whole number from 0 to 65535/],
  [
    'taken',
    () => ['view', traces, '--port', String(usedPort)],
    /cannot listen on 127\.0\.0\.1:\d+: .*EADDRINUSE.*--port/,
  ],
  ['read-only', () => ['view', traces, '--out', join(READ_ONLY, 'x.html')], /cannot write \/sys\/nowhere\/x\.html/],

  ['absent', () => ['export', traces], /required option '--out <path>' not specified/],
  ['absent', () => ['export', '/nowhere', '--out', join(folder, 'x.json')], /\/nowhere/],
  [
    'misspelt',
    () => ['export', traces, '--format', 'parqet', '--out', 'x'],
    /--format.*Allowed choices are agenttraj, chatml, trl, dpo, atif, verl, parquet/,
  ],
  [
    'wrong file',
    () => ['export', traces, '--out', join(folder, 'x.txt')],
    /its ending names no format \(\.json, \.jsonl, \.parquet\); give --format/,
  ],
  [
    'contradiction',
    () => ['export', traces, '--format', 'chatml', '--out', join(folder, 'x.parquet')],
    /its ending names parquet, --format names chatml/,
  ],
  ['read-only', () => ['export', traces, '--out', join(READ_ONLY, 'x.json')], /cannot write \/sys\/nowhere\/x\.json/],
  [
    'absent',
    () => ['export', traces, '--purpose', 'tests', '--out', join(folder, 'x.json')],
    /no episode matches; it holds 1 of purpose train/,
  ],

  ['misspelt', () => ['envs', '--jsn'], /unknown option '--jsn'.*--json/],
  ['wrong type', () => ['envs', 'textcraf'], /unknown env 'textcraf'; did you mean 'textcraft'/],

  ['misspelt', () => ['prune-engines', '--dry-rn'], /unknown option '--dry-rn'.*--dry-run/],
  ['wrong type', () => ['prune-engines', 'cpu'], /too many arguments for 'prune-engines'/],

  ['absent', () => ['check-env', './nowhere.mjs'], /there is no module at .*nowhere\.mjs/],
  ['wrong type', () => ['check-env', 'textcraft', '--cases', 'many'], /--cases.*Expected a whole number from 1 to/],
  ['wrong type', () => ['check-env', 'textcraft', '--option', 'fidelity'], /--option fidelity: expected key=value/],

  ['misspelt', () => ['new-env', 'My World', '--dir', folder], /'My World' is no id; use lower-case letters/],
  ['taken', () => ['new-env', 'traces', '--dir', folder], /exists already; it is left as it is/],
  ['read-only', () => ['new-env', 'guess', '--dir', READ_ONLY], /cannot write \/sys\/nowhere\/guess/],

  ['misspelt', () => ['new-agent', 'My Agent', '--dir', folder], /'My Agent' is no id; use lower-case letters/],
  ['taken', () => ['new-agent', 'traces', '--dir', folder], /new-agent: .*exists already; it is left as it is/],
  ['absent', () => ['new-agent'], /missing required argument 'name'/],
  ['misspelt', () => ['new-study', 'My Study', '--dir', folder], /'My Study' is no id; use lower-case letters/],
  ['taken', () => ['new-study', 'traces', '--dir', folder], /new-study: .*exists already; it is left as it is/],
  ['absent', () => ['new-study'], /missing required argument 'name'/],

  ['absent', () => ['index', '/nowhere.jsonl'], /\/nowhere\.jsonl/],
  ['wrong file', () => ['index', noCorpus], /no-corpus\.jsonl: .*expected a JSON object a line/],
  ['wrong type', () => ['index', corpus, '--k1', 'much'], /--k1.*Expected a number of at least 0/],
  ['misspelt', () => ['index', corpus, '--analyzer', 'englsh'], /Allowed choices are plain, english/],
  ['read-only', () => ['index', corpus, '--out', join(READ_ONLY, 'x.index')], /\/sys\/nowhere/],

  ['misspelt', () => ['serve-env', 'textcaft'], /unknown env 'textcaft'; did you mean 'textcraft'\?/],
  [
    'out of range',
    () => ['serve-env', 'textcraft', '--port', '70000'],
    /--port.*Expected a whole number from 0 to 65535/,
  ],
  ['contradiction', () => ['serve-env', 'textcraft', 'textcraft'], /a world is named twice/],
  ['out of range', () => ['serve-env', 'textcraft', '--threads', '1000000'], /--threads.*whole number from 1 to 256/],
  ['out of range', () => ['serve-env', 'textcraft', '--step-seconds', '1e9'], /--step-seconds.*from 1 to 2147483/],
  ['absent', () => ['serve-policy', '/nowhere'], /\/nowhere is no run/],
  [
    'absent',
    () => ['rollout', '--agent', 'http://127.0.0.1:9/init', '--policy', 'random', '--runs', folder],
    /agent: a service needs tasks: their number/,
  ],
  ['absent', () => ['gateway'], /required option '--upstream <url>' not specified/],
  [
    'absent',
    () => ['gateway', '--upstream', 'http://127.0.0.1:9/v1'],
    /127\.0\.0\.1:9\/v1 does not answer: .*is the server running/,
  ],
  ['wrong type', () => ['gateway', '--upstream', 'openai'], /'openai' is no URL; expected e\.g\. http/],
  ['out of range', () => ['gateway', '--upstream', 'http://127.0.0.1:9/v1', '--port', '-1'], /--port.*from 0 to 65535/],
  [
    'misspelt',
    () => ['gateway', '--upstream', 'http://127.0.0.1:9/v1', '--recrod', 'x'],
    /unknown option '--recrod'.*--record/,
  ],
  [
    'out of range',
    () => ['serve-policy', trained, '--max-batch', '0'],
    /--max-batch.*Expected a whole number from 1 to/,
  ],
  ['absent', () => ['serve-retriever', '/nowhere.index'], /\/nowhere\.index/],
  ['wrong file', () => ['serve-retriever', quickstart], /quickstart\.yaml/],
  [
    'taken',
    () => ['serve-retriever', corpus, '--port', String(usedPort)],
    /cannot listen on 127\.0\.0\.1:\d+: .*EADDRINUSE/,
  ],

  ['absent', () => sft(), /required option '--data <path>' not specified/],
  ['absent', () => sft('--data', '/nowhere.jsonl'), /\/nowhere\.jsonl does not exist/],
  ['wrong type', () => sft('--data', traces, '--epochs', 'few'), /--epochs.*Expected a whole number of at least 1/],
  ['contradiction', () => sft('--data', traces), /it was played in toy, the configuration's world is textcraft/],
  ['out of range', () => dpo('--data', traces, '--beta', '0'), /--beta.*Expected a number above 0/],
  ['wrong file', () => dpo('--data', READ_ONLY.slice(0, 4)), /no trace here/],

  ['absent', () => ['replay-learner', '/nowhere'], /\/nowhere is no run/],
  ['absent', () => ['replay-learner'], /missing required argument 'run'/],
  ['wrong type', () => ['worker', 'http://127.0.0.1', '--run', 'x'], /expected the address of a NATS server/],
  [
    'out of range',
    () => ['worker', 'nats://10.0.0.1:4222', '--run', 'x'],
    /is another machine: that takes TLS and a key/,
  ],
  ['contradiction', () => ['train', quickstart, '--creds', 'learner.creds'], /--creds needs --cluster/],
  [
    'absent',
    () => ['worker', 'nats://127.0.0.1:4222', '--run', 'x', '--creds', 'none.creds'],
    /no such file.*cluster init/,
  ],
  ['wrong file', () => ['worker', 'nats://127.0.0.1:4222', '--run', 'x', '--creds', broken], /expected credentials as/],
  ['contradiction', () => ['train', quickstart, '--verify', '0.1'], /--verify needs --cluster/],
  [
    'out of range',
    () => ['train', quickstart, '--cluster', 'nats://127.0.0.1:9', '--verify', '2'],
    /Expected a number from 0 to 1/,
  ],
  ['misspelt', () => ['cluster', 'inti'], /Expected init or status; did you mean init\?/],
  ['absent', () => ['cluster', 'status'], /give the address of the server/],
  ['out of range', () => ['cluster', 'init', '--port', '70000'], /Expected a whole number from 1 to 65535/],
  ['contradiction', () => ['cluster', 'init', 'nats://127.0.0.1:4222'], /cluster init takes no address/],
  [
    'wrong type',
    () => ['cluster', 'init', '--dir', join(folder, 'c'), '--host', 'a b'],
    /expected a name or an address/,
  ],
  ['read-only', () => ['cluster', 'init', '--dir', READ_ONLY], /--dir: /],
  ['out of range', () => ['worker', 'nats://127.0.0.1:4222', '--run', 'a b'], /letters, digits, '-' and '_'/],
  ['absent', () => ['worker', 'nats://127.0.0.1:4222'], /required option '--run <name>' not specified/],
  ['contradiction', () => ['train', quickstart, '--local-rollouts', '2'], /--local-rollouts needs --cluster/],
  [
    'contradiction',
    () => ['train', quickstart, '--journal', '--record-order', join(folder, 'order')],
    /--record-order.*leave --journal out/,
  ],
  ['contradiction', () => ['doctor', '--server', 'http://127.0.0.1:9'], /--server needs --model <path>/],
  ['misspelt', () => ['doctor', '--quantize', 'int3'], /Allowed choices are none, int8, int4/],
  ['absent', () => ['doctor', '--model', '/nowhere'], /\/nowhere/],
  // Every command's other kinds.
  ['misspelt', () => sft('--data', traces, '--epoch', '2'), /unknown option '--epoch'.*--epochs/],
  ['misspelt', () => ['sft', 'quikstart.yaml', '--data', traces], /cannot read quikstart\.yaml/],
  ['read-only', () => ['sft', quickstart, '--runs', READ_ONLY, '--data', traces], /\/sys\/nowhere|played in toy/],
  ['wrong file', () => sft('--data', quickstart), /quickstart\.yaml/],
  ['misspelt', () => dpo('--data', traces, '--bta', '0.1'), /unknown option '--bta'.*--beta/],
  ['absent', () => dpo(), /required option '--data <path>' not specified/],
  ['wrong type', () => dpo('--data', traces, '--beta', 'mild'), /--beta.*Expected a number above 0/],
  ['misspelt', () => ['eval', trained, '--gredy'], /unknown option '--gredy'.*--greedy/],
  ['absent', () => ['eval'], /missing required argument/],
  ['misspelt', () => rollout('--episode', '4'), /unknown option '--episode'.*--episodes/],
  ['read-only', () => ['rollout', '--env', 'textcraft', '--policy', 'random', '--runs', READ_ONLY], /\/sys\/nowhere/],
  ['wrong type', () => rollout('--concurrency', 'many'), /--concurrency.*Expected a whole number/],
  ['misspelt', () => ['play', 'textcraft', '--taks', '3'], /unknown option '--taks'.*--task/],
  ['wrong type', () => ['replay', traces, '--episode', 'first'], /has no episode first; it holds 1/],
  ['wrong file', () => ['replay', quickstart], /quickstart\.yaml/],
  ['misspelt', () => ['view', traces, '--prot', '1'], /unknown option '--prot'.*--port/],
  ['wrong file', () => ['view', quickstart], /quickstart\.yaml/],
  ['absent', () => ['import'], /missing required argument 'source'/],
  [
    'absent',
    () => ['import', '/nowhere', '--out', join(folder, 'x')],
    /\/nowhere does not exist; give a file or a folder/,
  ],
  [
    'misspelt',
    () => ['import', corpus, '--from', 'otlp', '--out', join(folder, 'x')],
    /--from.*Allowed choices are atif/,
  ],
  ['wrong file', () => ['import', corpus, '--out', join(folder, 'x')], /of no format that is known \(atif, otel/],
  [
    'wrong file',
    () => ['import', noCorpus, '--from', 'otel', '--out', join(folder, 'x')],
    /found none; .*it is no JSON/,
  ],
  ['wrong file', () => ['import', traces, '--from', 'atif', '--out', join(folder, 'x')], /it is no document of ATIF/],
  ['taken', () => ['import', chatLog, '--out', trained], /exists already; choose another place with --out/],
  [
    'read-only',
    () => ['import', chatLog, '--from', 'openai', '--out', `${READ_ONLY}/x`],
    /cannot write \/sys\/nowhere\/x/,
  ],
  [
    'contradiction',
    () => ['export', traces, '--format', 'verl', '--out', join(folder, 'x.jsonl')],
    /its ending names chatml, --format names verl/,
  ],
  ['taken', () => ['export', traces, '--format', 'atif', '--out', trained], /exists already; choose another place/],
  ['misspelt', () => ['export', traces, '--succes', '--out', 'x.json'], /unknown option '--succes'.*--success/],
  ['wrong file', () => ['export', quickstart, '--out', join(folder, 'x.json')], /quickstart\.yaml/],
  ['misspelt', () => ['check-env', 'textcrat'], /did you mean 'textcraft'\?/],
  ['out of range', () => ['check-env', 'textcraft', '--cases', '0'], /--cases.*Expected a whole number from 1 to/],
  ['absent', () => ['new-env'], /missing required argument 'name'/],
  ['misspelt', () => ['new-env', 'guess', '--dri', folder], /unknown option '--dri'.*--dir/],
  ['out of range', () => ['new-env', '../guess', '--dir', folder], /'\.\.\/guess' is no id/],
  ['out of range', () => ['index', corpus, '--b', '2'], /--b.*Expected a number from 0 to 1/],
  ['out of range', () => ['index', corpus, '--k1', '-1'], /--k1.*Expected a number of at least 0/],
  ['absent', () => ['serve-env'], /missing required argument 'env'/],
  ['wrong type', () => ['serve-env', 'textcraft', '--port', 'http'], /--port.*Expected a whole number from 0 to 65535/],
  ['misspelt', () => ['serve-env', 'textcraft', '--thread', '2'], /unknown option '--thread'.*--threads/],
  [
    'out of range',
    () => ['serve-policy', trained, '--max-wait-ms', '2147483648'],
    /--max-wait-ms.*Expected a whole number from 0 to 2147483647/,
  ],
  ['misspelt', () => ['serve-policy', trained, '--prot', '1'], /unknown option '--prot'.*--port/],
  ['wrong file', () => ['serve-policy', quickstart], /quickstart\.yaml is no run/],
  ['wrong type', () => ['serve-policy', trained, '--port', 'http'], /--port.*Expected a whole number from 0 to 65535/],
  ['out of range', () => ['serve-retriever', corpus, '--topk', '0'], /--topk.*Expected a whole number from 1 to/],
  ['misspelt', () => ['serve-retriever', corpus, '--topK', '3'], /unknown option '--topK'.*--topk/],
  ['contradiction', () => ['serve-retriever', corpus, '--host', '0.0.0.0', '--port', '0'], /LONGPLAY_SERVER_TOKEN/],
  ['misspelt', () => ['algorithms', '--jsn'], /unknown option '--jsn'.*--json/],
  ['contradiction', () => ['algorithms', 'grpo'], /too many arguments/],
  ['misspelt', () => ['models', '--jsn'], /unknown option '--jsn'.*--json/],
  ['contradiction', () => ['models', 'llama'], /too many arguments/],
  ['contradiction', () => ['models', '--quantize', 'int8'], /--quantize: it needs --model <path>/],
  ['wrong file', () => ['models', '--model', '/no/model'], /\/no\/model: there is no such file or folder/],
  ['misspelt', () => ['doctor', '--jsn'], /unknown option '--jsn'.*--json/],
];

/** Typed into a process, because a thread or a process comes before the mistake. */
const IN_A_PROCESS: typeof MISTAKES = [
  ['absent', () => train('engine={name: onnxruntime-node, device: cuda}'), /cannot use cuda here/],
  [
    'wrong file',
    () => ['rescore', traces, '--verify', noWorld],
    /expected a function as the export verify, got nothing/,
  ],
  ['wrong file', () => ['rescore', traces, '--verify', syntax], /syntax\.mjs: it cannot be loaded/],
  ['wrong file', () => ['check-env', noWorld], /createEnv/],
  ['wrong file', () => ['check-env', syntax], /syntax\.mjs/],
  ['misspelt', () => ['check-env', 'textcraft', '--option', 'fidelty=original'], /fidelty/],
  [
    'taken',
    () => ['serve-env', 'textcraft', '--port', String(usedPort)],
    /cannot listen on 127\.0\.0\.1:\d+: .*EADDRINUSE/,
  ],
  [
    'taken',
    () => ['serve-policy', trained, '--port', String(usedPort)],
    /cannot listen on 127\.0\.0\.1:\d+: .*EADDRINUSE/,
  ],
];

function expectOneLine({ status, stdout, stderr }: Awaited<ReturnType<typeof typed>>, message: RegExp): void {
  const lines = stderr.trimEnd().split('\n');
  expect(lines.at(-1)).toMatch(message);
  expect(stderr).not.toMatch(/^\s+at |internal error/m);
  expect(lines.length, stderr).toBeLessThanOrEqual(2); // a notice may come first
  expect(stdout).toBe('');
  expect(status).toBe(2);
  expect(existsSync(runs) ? readdirSync(runs) : []).toEqual([]);
}

describe("a user's mistake is one line and exit code 2", { timeout: 60_000 }, () => {
  const name = ([kind, args]: (typeof MISTAKES)[number]) => `${kind}: ${args().join(' ').replaceAll(folder, '…')}`;

  it.each(MISTAKES.map((one) => [name(one), one] as const))('%s', async (_, [, args, message]) => {
    expectOneLine(await typed(...args()), message);
  });
  it.each(IN_A_PROCESS.map((one) => [name(one), one] as const))('%s (a process)', (_, [, args, message]) => {
    const { status, stdout, stderr } = longplay(...args());
    expectOneLine({ status: status!, stdout, stderr }, message);
  });

  it('the table has at least two of each command and of each kind', async () => {
    const all = [...MISTAKES, ...IN_A_PROCESS];
    expect(all.length).toBeGreaterThanOrEqual(80);
    const count = (words: readonly string[]) =>
      words.map((word) => [word, all.filter(([kind, args]) => kind === word || args()[0] === word).length] as const);
    const commands = (await commandLine()).commands.map((command) => command.name());
    const kinds = [...new Set(all.map(([kind]) => kind))];
    for (const [word, n] of count([...commands, ...kinds])) expect(n, word).toBeGreaterThanOrEqual(2);
  });

  it('a run folder that exists is left as it is', async () => {
    const held = join(folder, 'held');
    mkdirSync(join(held, 'mine'), { recursive: true });
    const { status, stderr } = await typed('train', quickstart, '--runs', held, '--name', 'mine');
    expect(stderr).toMatch(/mine exists already; choose another name/);
    expect(status).toBe(2);
    expect(readdirSync(join(held, 'mine'))).toEqual([]);
  });
});

describe('export', () => {
  it.each([
    ['x.parquet', /^PAR1/],
    ['x.json', /^\[\n\{"item_id"/],
    ['x.jsonl', /^\{"messages"/],
  ])('writes the format of the ending of %s', async (name, begins) => {
    const path = join(folder, name);
    expect(await typed('export', traces, '--out', path)).toMatchObject({ status: 0, stderr: '' });
    expect(readFileSync(path, 'latin1')).toMatch(begins);
  });
});

describe('flags', { timeout: 60_000 }, () => {
  it('take one value each, so that an argument after them is an argument', async () => {
    const [train] = (await commandLine('train')).commands as [Command];
    const [evaluate] = (await commandLine('eval')).commands as [Command];
    train.parseOptions(['--set', 'seed=1', serial, '--set', 'stop.updates=2']);
    expect(train.opts().set).toEqual(['seed=1', 'stop.updates=2']);
    expect(train.parseOptions(['--set', 'seed=1', serial]).operands).toEqual([serial]);
    expect(evaluate.parseOptions(['--horizon', '8,24', '--horizon', '30', 'runs/x']).operands).toEqual(['runs/x']);
    expect(evaluate.opts().horizon).toEqual([8, 24, 30]);
  });
  it.each(Object.entries(examples))('of the examples of %s parse', async (command, lines) => {
    const [known] = (await commandLine(command)).commands as [Command];
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines) {
      const words = line.split(' ');
      expect(words[0]).toBe(command);
      const { unknown, operands } = known.parseOptions(words.slice(1));
      expect(unknown, line).toEqual([]);
      expect(operands.length, line).toBeLessThanOrEqual(Math.max(2, known.registeredArguments.length));
    }
  });
  it('every command shows examples, and the program its version', async () => {
    for (const command of (await commandLine()).commands) {
      const { status, stdout } = await typed(command.name(), '--help');
      expect(stdout).toMatch(new RegExp(`Examples:\n  longplay ${command.name()}`));
      expect(stdout).not.toMatch(/default: (\[\]|false|undefined)/); // no default worth showing
      expect(status).toBe(0);
    }
    const { version } = JSON.parse(readFileSync(new URL('package.json', packageRoot), 'utf8')) as { version: string };
    expect(await typed('--version')).toMatchObject({ status: 0, stdout: `${version}\n` });
  });
});

describe('commands that only print', { timeout: 60_000 }, () => {
  it('lists the worlds, for people and for programs', async () => {
    expect((await typed('envs')).stdout).toMatch(/textcraft +544 +374 +100/);
    const worlds = JSON.parse((await typed('envs', '--json')).stdout) as { id: string; tasks: number }[];
    expect(worlds.map(({ id }) => id)).toContain('babyai');
  });
  it('lists the algorithms, for people and for programs', async () => {
    const { stdout } = await typed('algorithms');
    expect(stdout).toMatch(/ {2}cispo: CISPO \(https:\/\/arxiv\.org\/abs\/2506\.13585\)/);
    expect(stdout).toContain('key   learner.policyLoss.tauNegative: number, > 0 … 1,000,000; default 1.05');
    const { parts, equivalents } = JSON.parse((await typed('algorithms', '--json')).stdout) as {
      parts: { path: string; algorithms: { name: string; knobs: { path: string }[] }[] }[];
      equivalents: { library: string }[];
    };
    const passAtK = parts[1]!.algorithms.find(({ name }) => name === 'pass_at_k')!;
    expect(passAtK.knobs.map(({ path }) => path)).toEqual(['learner.estimator.k', 'learner.estimator.threshold']);
    expect(new Set(equivalents.map(({ library }) => library)).size).toBe(3);
  });
  it('names an engine that works, and writes nothing but its answer', () => {
    const { stdout, stderr } = longplay('doctor', '--json');
    const { engines, auto } = JSON.parse(stdout);
    expect(stderr).toBe('');
    expect(engines.find(({ engine }: { engine: string }) => engine === 'reference/cpu').works).toBe(true);
    expect(auto).toMatch(/^onnxruntime-/);
  });
});
