/** Teacher of a run that distils: found, checked against the student, and read, before play begins. */
import type { RunConfig } from '../config/run-config.ts';
import { LongplayError, messageOf, UserError } from '../core/errors.ts';
import type { WorldPrompt } from '../core/prompt.ts';
import { readApiKey } from '../http/api-key.ts';
import { loadCheckpointOf, loadNewestOf } from '../learning/learner/run-checkpoint.ts';
import { connectTeacher, PROBE_TEXT } from '../learning/learner/server-teacher.ts';
import { checkTeacher, type TeacherSpec } from '../learning/learner/teacher.ts';
import { digestOf, encodeWeights } from '../learning/learner/weights-file.ts';
import { fetchModel } from '../policy/pretrained/hub.ts';
import { type PolicySetup, setUpPolicy } from '../policy/setup.ts';
import type { Reading } from '../text/reading/codec-of.ts';
import { readRunConfig } from './run-folder.ts';

/** Policy of the student, as far as its teacher has to fit it. */
type Student = Pick<PolicySetup<unknown, unknown>, 'codec' | 'model' | 'identity' | 'saved'>;

/**
 * Prepares the teacher that a configuration names.
 * @param world what the student reads it by
 * @returns undefined where there is none
 * @throws {UserError} BAD_CONFIG, BAD_CHECKPOINT or UNKNOWN_RUN for a teacher that is not there or does not fit; REMOTE_FAILED
 *   for a server that does not answer
 */
export async function prepareTeacher(
  config: RunConfig,
  student: Student | undefined,
  world: Reading & { readonly prompt: WorldPrompt },
  onNotice: (message: string) => void = () => {},
): Promise<TeacherSpec | undefined> {
  const { distillation } = config.learner;
  if (!distillation || !student) return undefined;
  const saved = student.saved?.learner.trainer.teacher;
  const spec = await openSpec(config, distillation.teacher, student, world, onNotice);
  checkTeacher(saved, spec.identity);
  return spec;
}

async function openSpec(
  config: RunConfig,
  teacher: NonNullable<RunConfig['learner']['distillation']>['teacher'],
  student: Student,
  world: Reading & { readonly prompt: WorldPrompt },
  onNotice: (message: string) => void,
): Promise<TeacherSpec> {
  if (teacher.type === 'ema') {
    const { average } = student.saved ?? {};
    return { type: 'ema', decay: teacher.decay, params: average, identity: { type: 'ema' } };
  }
  if (teacher.type === 'server') {
    const { apiKeyEnv } = teacher;
    const key = apiKeyEnv === undefined ? undefined : readApiKey(apiKeyEnv);
    if (apiKeyEnv !== undefined && key === undefined) {
      throw new UserError(
        'BAD_CONFIG',
        `learner.distillation.teacher.apiKeyEnv: expected a key in ${apiKeyEnv}, which is not set; set it, or leave apiKeyEnv out`,
      );
    }
    const ids = [...student.codec.spell(PROBE_TEXT)];
    const server = await connectTeacher({ url: teacher.url, model: teacher.model, key }, { text: PROBE_TEXT, ids });
    return { type: 'server', server, identity: { type: 'server', model: server.model } };
  }
  return readTeacher(teacher.path, config, student, world, onNotice);
}

/** Reads the weights of a run that teaches. */
async function readTeacher(
  path: string,
  config: RunConfig,
  { identity, model, saved }: Student,
  world: Reading & { readonly prompt: WorldPrompt },
  onNotice: (message: string) => void,
): Promise<TeacherSpec> {
  const at = 'learner.distillation.teacher.path';
  const refuse = (why: string) => new UserError('BAD_CONFIG', `${at}: ${path}: ${why}`);
  const { setup, update } = await nameKey(at, async () => {
    const taught = readRunConfig(path);
    checkReading(at, path, config, taught);
    const before = saved?.learner.trainer.teacher;
    // A teacher that was trained on meanwhile still teaches by the checkpoint that the student began with.
    const checkpoint = before?.type === 'run' ? loadCheckpointOf(path, before.update) : loadNewestOf(path);
    await fetchModel(taught.policy.path, onNotice);
    const found = setUpPolicy(taught, world, path, checkpoint);
    if (!found) throw refuse(`policy '${taught.policy.kind}' has no weights that could score anything`);
    return { setup: found, update: checkpoint.update };
  });
  for (const what of ['view', 'vocabulary'] as const) {
    const [own, its] = [identity[what], setup.identity[what]];
    if (own !== its) throw refuse(`a teacher reads as its student does; expected the ${what} ${own}, got ${its}`);
  }
  if (setup.model.maxPositions < model.maxPositions) {
    const needed = `expected at least the ${model.maxPositions} of the student`;
    throw refuse(`it reads ${setup.model.maxPositions} tokens, ${needed} (policy.model.maxPositions)`);
  }
  const digest = digestOf(encodeWeights(setup.model, setup.params));
  onNotice(`the teacher is ${path}, update ${update}`);
  return { type: 'run', model: setup.model, params: setup.params, identity: { type: 'run', digest, update } };
}

/** Refuses a teacher of another world, or that decides otherwise. @throws {UserError} BAD_CONFIG */
function checkReading(key: string, path: string, student: RunConfig, teacher: RunConfig): void {
  const { env, policy } = student;
  const needs = [
    ['world', env.id, teacher.env.id],
    ['policy.decoder', policy.decoder, teacher.policy.decoder],
  ] as const;
  for (const [what, own, its] of needs) {
    // A user's module may have been moved; its view and vocabulary show whether it is the same.
    if (own === its || (what === 'world' && [own, its].every((id) => /[\\/]/.test(id)))) continue;
    throw new UserError(
      'BAD_CONFIG',
      `${key}: ${path}: a teacher plays and decides as its student does; expected the ${what} ${own}, got ${its}`,
    );
  }
}

/** Names the key in front of what a function throws. */
async function nameKey<T>(key: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (thrown) {
    if (!(thrown instanceof LongplayError) || thrown.message.startsWith(key)) throw thrown;
    throw new UserError(thrown.code, `${key}: ${messageOf(thrown)}`, { cause: thrown });
  }
}
