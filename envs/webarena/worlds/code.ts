/** Projects of the code host: issues, merge requests, commits, members. */
import type { Rng } from '../../../src/core/rng.ts';
import { daysAgo, distinct, drawSome } from './draw.ts';
import { COMMIT_VERBS, COMPONENTS, FIRST_NAMES, LABELS, LAST_NAMES, PROBLEMS, PROJECT_NAMES, WHENS } from './words.ts';

/** Issue of a project. */
export interface Issue {
  /** Number inside its project. */
  readonly iid: number;
  readonly title: string;
  readonly labels: readonly string[];
  readonly author: string;
  readonly assignee: string;
  readonly state: 'open' | 'closed';
  readonly date: string;
}

/** Merge request of a project. */
export interface MergeRequest {
  readonly iid: number;
  readonly title: string;
  readonly author: string;
  readonly state: 'open' | 'merged';
  readonly date: string;
}

/** Commit of a project. */
export interface Commit {
  readonly author: string;
  readonly date: string;
  readonly message: string;
}

/** Roles of members, least powerful first. */
export const ROLES = ['Guest', 'Reporter', 'Developer', 'Maintainer'] as const;

/** Project of the code host. */
export interface Project {
  readonly owner: string;
  readonly name: string;
  /** `owner/name` */
  readonly path: string;
  readonly stars: number;
  /** Newest first, as all lists of a project. */
  readonly issues: readonly Issue[];
  readonly mergeRequests: readonly MergeRequest[];
  readonly commits: readonly Commit[];
  readonly members: readonly { readonly user: string; readonly role: string }[];
}

/** World of the code host. */
export interface CodeWorld {
  readonly users: readonly string[];
  readonly projects: readonly Project[];
}

/** The user who is signed in; owns no project at the start. */
export const CODE_USER = 'marlow';

/** Draws the world of the code host. */
export function drawCode(rng: Rng): CodeWorld {
  const name = distinct(() => `${rng.pick(FIRST_NAMES)}.${rng.pick(LAST_NAMES)}`.toLowerCase());
  const users = Array.from({ length: 40 }, name);
  const projects = PROJECT_NAMES.map((project, i) => drawProject(rng.split(i), project, users));
  return { users, projects };
}

function drawProject(rng: Rng, name: string, users: readonly string[]): Project {
  const team = drawSome(rng, users, 7);
  const owner = team[0]!;
  const title = distinct(() => `${rng.pick(COMPONENTS)} ${rng.pick(PROBLEMS)} on ${rng.pick(WHENS)}`);
  const byDate = <T extends { readonly date: string }>(items: T[]): T[] =>
    items.sort((a, b) => (a.date > b.date ? -1 : a.date < b.date ? 1 : 0));
  const issueDays = rng.shuffle(Array.from({ length: 200 }, (_, i) => i + 1));
  const issues = Array.from(
    { length: 18 + rng.int(10) },
    (_, n): Issue => ({
      iid: n + 1,
      title: title(),
      labels: drawSome(rng, LABELS, 1 + rng.int(2)),
      author: rng.pick(team),
      assignee: rng.int(4) === 0 ? '' : rng.pick(team),
      state: rng.int(3) === 0 ? 'closed' : 'open',
      date: daysAgo(issueDays[n]!),
    }),
  );
  const mergeRequests = Array.from(
    { length: 5 + rng.int(4) },
    (_, n): MergeRequest => ({
      iid: n + 1,
      title: `Draft of the ${rng.pick(COMPONENTS)} ${n + 1}`,
      author: rng.pick(team),
      state: rng.int(3) === 0 ? 'merged' : 'open',
      date: daysAgo(1 + rng.int(90)),
    }),
  );
  const commits = Array.from(
    { length: 50 + rng.int(30) },
    (): Commit => ({
      author: rng.pick(team),
      date: daysAgo(1 + rng.int(24)),
      message: `${rng.pick(COMMIT_VERBS)} ${rng.pick(COMPONENTS)} ${rng.pick(WHENS)} handling`,
    }),
  );
  const members = team.map((user, i) => ({ user, role: i === 0 ? 'Maintainer' : rng.pick(ROLES) }));
  const stars = 5 + rng.int(400);
  return {
    owner,
    name,
    path: `${owner}/${name}`,
    stars,
    issues: byDate(issues),
    mergeRequests: byDate(mergeRequests),
    commits: byDate(commits),
    members,
  };
}
