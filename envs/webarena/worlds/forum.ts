/** Forums, posts, comments and users. */
import type { Rng } from '../../../src/core/rng.ts';
import { daysAgo, distinct } from './draw.ts';
import { FIRST_NAMES, FORUMS, LAST_NAMES, REMARKS, SUBJECTS, TOPICS } from './words.ts';

/** Post in a forum. */
export interface Post {
  readonly id: number;
  readonly forum: string;
  readonly title: string;
  readonly author: string;
  readonly date: string;
  readonly votes: number;
}

/** Comment on a post. */
export interface Comment {
  readonly id: number;
  readonly post: number;
  readonly author: string;
  readonly text: string;
  readonly votes: number;
}

/** World of the forum. */
export interface ForumWorld {
  readonly forums: readonly string[];
  readonly users: readonly string[];
  /** Newest first; no two of a forum are of the same day. */
  readonly posts: readonly Post[];
  readonly comments: readonly Comment[];
}

/** The user who is signed in. */
export const FORUM_USER = 'marlow';

/** Draws the world of the forum. */
export function drawForum(rng: Rng): ForumWorld {
  const name = distinct(() => `${rng.pick(FIRST_NAMES)}_${rng.pick(LAST_NAMES)}`.toLowerCase());
  const users = Array.from({ length: 80 }, name);
  const title = distinct(
    () => `A ${rng.pick(TOPICS)} ${rng.pick(SUBJECTS)} about ${rng.pick(TOPICS)} ${rng.pick(SUBJECTS)}s`,
  );
  const days = new Map(FORUMS.map((forum) => [forum, rng.shuffle(Array.from({ length: 300 }, (_, i) => i + 1))]));
  const posts = Array.from({ length: 260 }, (_, i): Omit<Post, 'id'> => {
    const forum = i < FORUMS.length * 8 ? FORUMS[i % FORUMS.length]! : rng.pick(FORUMS);
    const date = daysAgo(days.get(forum)!.pop()!);
    return { forum, title: title(), author: rng.pick(users), date, votes: rng.int(900) };
  })
    .sort((a, b) => (a.date < b.date ? 1 : a.date > b.date ? -1 : 0))
    .map((post, id) => ({ id, ...post }));
  const comments = Array.from({ length: 1500 }, (_, id) => {
    return {
      id,
      post: rng.int(posts.length),
      author: rng.pick(users),
      text: rng.pick(REMARKS),
      votes: rng.int(40) - 12,
    };
  });
  return { forums: FORUMS, users, posts, comments };
}
