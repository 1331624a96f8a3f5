/**
 * AgentGym dialect of WebArena. The server answers over the sites of our own.
 *
 * Differs: `info` holds the page's address alone; `/observation_metadata` holds the lines without a picture; an env that
 * breaks is HTTP 500 where the original answers its exception's text as an observation.
 */
import type { AgentGymDialect, AgentGymMistake, AgentGymReply, AgentGymSession } from '../../src/core/agentgym.ts';
import { taskTable } from '../../src/core/task.ts';
import { readTurn } from './describe.ts';
import { templateOf } from './tasks.ts';

const LOST = { observation: 'TimeoutError', sites: 'Error', object: 'Error' } as const;

function formatStart({ index, observation }: AgentGymSession) {
  const turn = readTurn(observation);
  return {
    observation: turn?.observation ?? observation,
    sites: templateOf(index!).sites,
    object: turn?.objective ?? '',
  };
}

/** One for every action that was carried out; the score where the episode ends. */
function formatStep({ observation, reward, done }: AgentGymSession) {
  const turn = readTurn(observation);
  const info = turn
    ? { page: { url: turn.url, content: '' }, fail_error: turn.error, observation_metadata: metadata(turn.observation) }
    : null;
  return { observation, reward: done ? reward : Number(turn?.error === ''), terminated: done, truncated: false, info };
}

function metadata(page: string) {
  const lines = Array.from(page.matchAll(/^\t*(\[(\d+)\] .*)$/gm), ([, text, id]) => [id!, { text }]);
  return { text: { obs_nodes_info: Object.fromEntries(lines) } };
}

function mistake({ kind, path, ...rest }: AgentGymMistake): AgentGymReply | undefined {
  if (kind === 'failed') return path === '/reset' ? { status: 200, json: LOST } : undefined;
  if (path === '/reset') return { status: 200, json: LOST };
  const message = 'id' in rest ? String(rest.id) : rest.message;
  if (path === '/step')
    return { status: 200, json: { observation: message, reward: 0, terminated: false, truncated: false, info: null } };
  return { status: 500, text: 'Internal Server Error' };
}

export const agentgym: AgentGymDialect = {
  server: {
    options: { fidelity: 'original', dialect: 'chromium' },
    idField: 'env_idx',
    validation: 'none',
    routes: [
      { path: '/', does: 'reply', reply: { status: 200, text: 'ok' } },
      { path: '/list_envs', does: 'reply', reply: { status: 500, text: 'Internal Server Error' } },
      { path: '/create', does: 'create', body: false, answer: ({ id }) => ({ env_idx: id }) },
      {
        path: '/reset',
        does: 'reset',
        fields: { seed: { kind: 'int', fallback: 0 }, idx: { kind: 'int' } },
        index: ({ idx }) => {
          templateOf(Number(idx)); // throws for one that does not exist
          return Number(idx);
        },
        answer: formatStart,
      },
      {
        path: '/step',
        does: 'step',
        fields: { action: { kind: 'str' } },
        action: ({ action }) => String(action),
        answer: formatStep,
      },
      { path: '/observation', does: 'look', answer: ({ observation }) => observation },
      {
        path: '/observation_metadata',
        does: 'look',
        answer: ({ observation }) => metadata(readTurn(observation)?.observation ?? ''),
      },
      { path: '/close', does: 'close', answer: (existed, id) => ({ closed: existed ? 'closed' : String(id) }) },
    ],
    mistake,
  },
  client: {
    idField: 'env_idx',
    create: undefined,
    reset: (id, index) => ({ env_idx: id, seed: 0, idx: index }),
    first: (answer) => {
      const { observation, sites } = answer as { observation?: string; sites?: unknown };
      return sites === 'Error' ? undefined : observation;
    },
    formatAction: (action) => (action.includes('```') ? action : `\`\`\`${action}\`\`\``),
    readStep: ({ observation, reward, terminated, truncated }) => ({
      observation: observation as string,
      score: terminated === true ? (reward as number) : 0,
      done: terminated === true || truncated === true,
    }),
    score: 'step',
    isSolved: (score) => score > 0,
    // The paper's split depends on the server's own files, so all tasks are for both sides.
    tasks: taskTable(812, [], 'webarena'),
    rewardRange: [0, 1],
    // Its sites are shared and never reset: an action taken again is a second post, a second order.
    replay: 'never',
  },
};
