/** Forum site: front page, forums, posts with comments and votes, users, the signed-in user's settings. */
import {
  type Block,
  button,
  fields,
  form,
  heading,
  link,
  list,
  main,
  nav,
  type Page,
  page,
  row,
  searchbox,
  select,
  table,
  textbox,
} from '../page.ts';
import { type Comment, FORUM_USER, type ForumWorld, type Post } from '../worlds/forum.ts';
import { pager, takePage } from './paging.ts';
import {
  appendChange,
  type Changes,
  hasWords,
  listMade,
  notice,
  oneLine,
  type Posted,
  renderNotFound,
  type Site,
  searchWords,
  setChange,
  toggleChange,
} from './site.ts';

const SORTS = ['Hot', 'New', 'Top'] as const;

export const forum: Site = {
  get: (world, ...request) => get(world.forum, ...request),
  post: (world, ...request) => post(world.forum, ...request),
};

function get(world: ForumWorld, changes: Changes, path: string, query: URLSearchParams): Page {
  const [, section = '', name = '', id = ''] = path.split('/');
  if (section === '') return posts('All posts', world.posts, '', query);
  if (section === 'forums')
    return shell(
      'Forums',
      list(
        'Forums',
        world.forums.map((one) => [link(one, `/f/${one}`)]),
      ),
    );
  if (section === 'search') return search(world, query);
  if (section === 'f' && world.forums.includes(name)) {
    if (id === '') return forumPage(world, changes, name, query);
    const found = world.posts.find((one) => String(one.id) === id && one.forum === name);
    if (found) return postPage(world, changes, found);
  }
  if (section === 'user') {
    if (world.users.includes(name)) return userPage(world, changes, name, id, query);
    if (name === FORUM_USER) return own(changes);
  }
  if (section === 'submit') return submit(world, query);
  if (section === 'settings') return settings(changes, query);
  return renderNotFound();
}

function shell(title: string, ...blocks: readonly Block[]): Page {
  return page(
    `${title} | Postbox`,
    row(
      link('Postbox', '/'),
      link('Forums', '/forums'),
      link('Submit', '/submit'),
      link(FORUM_USER, `/user/${FORUM_USER}`),
      link('Settings', '/settings'),
    ),
    form('get', '/search', {}, row(searchbox('Search posts', 'q'), button('Search'))),
    main(title, ...blocks),
  );
}

/** Comments on a post, as the world has them. */
export function commentsOf({ comments }: ForumWorld, { id }: Post): Comment[] {
  return comments.filter(({ post }) => post === id);
}

/** Posts by votes, by date, or by a mix of both. */
export function sortPosts(list: readonly Post[], by: string | null): Post[] {
  if (by === 'Top') return [...list].sort((a, b) => b.votes - a.votes || a.id - b.id);
  if (by === 'New') return [...list];
  return [...list].sort((a, b) => b.votes - 3 * b.id - (a.votes - 3 * a.id) || a.id - b.id);
}

function postTable(shown: readonly Post[]): Block {
  return table(
    'Posts',
    ['Title', 'Author', 'Date'],
    shown.map(({ id, title, forum: where, author, date }) => [
      link(title, `/f/${where}/${id}`),
      link(author, `/user/${author}`),
      date,
    ]),
  );
}

function posts(
  title: string,
  all: readonly Post[],
  path: string,
  query: URLSearchParams,
  ...more: readonly Block[]
): Page {
  const by = SORTS.find((one) => one === query.get('sort')) ?? 'Hot';
  const shown = takePage(sortPosts(all, by), query.get('page'));
  return shell(
    title,
    ...more,
    form('get', path === '' ? '/' : path, {}, row('Sort by', select('Sort by', 'sort', SORTS, by), button('Sort'))),
    postTable(shown.items),
    pager(shown, path === '' ? '/' : path, query),
  );
}

function forumPage(world: ForumWorld, changes: Changes, name: string, query: URLSearchParams): Page {
  const on = changes[`forum/subscribed/${name}`] === 'yes';
  const all = world.posts.filter((one) => one.forum === name);
  const own = listMade(changes, `forum/post/${name}`).map((text) => row('Your post', text));
  return posts(
    name,
    all,
    `/f/${name}`,
    query,
    form('post', `/f/${name}/subscribe`, {}, row(button(on ? 'Unsubscribe' : 'Subscribe'), `${all.length} posts`)),
    ...own,
  );
}

function search({ posts: all }: ForumWorld, query: URLSearchParams): Page {
  const words = searchWords(query);
  const found = all.filter(({ title }) => hasWords(title, words));
  const shown = takePage(found, query.get('page'));
  return shell('Search', postTable(shown.items), pager(shown, '/search', query));
}

/** Votes of a post with the user's own. */
function votesOf(changes: Changes, { id, votes }: Post): number {
  return votes + Number(changes[`forum/vote/${id}`] ?? 0);
}

function postPage(world: ForumWorld, changes: Changes, found: Post): Page {
  const path = `/f/${found.forum}/${found.id}`;
  const comments = commentsOf(world, found);
  const own = listMade(changes, `forum/comment/${found.id}`);
  return shell(
    found.title,
    row(
      link(found.forum, `/f/${found.forum}`),
      link(found.author, `/user/${found.author}`),
      found.date,
      `${votesOf(changes, found)} votes`,
    ),
    form(
      'post',
      `${path}/vote`,
      {},
      row(button('Upvote', 'vote', '1'), button('Downvote', 'vote', '-1'), button('Retract vote', 'vote', '0')),
    ),
    row(heading(`Comments (${comments.length + own.length})`, 2)),
    form('post', `${path}/comment`, {}, row(textbox('Your comment', 'text'), button('Post Comment'))),
    ...own.map((text) => row(FORUM_USER, text, '0 votes')),
    ...comments.map(({ author, text, votes }) => row(link(author, `/user/${author}`), text, `${votes} votes`)),
  );
}

function userPage(world: ForumWorld, changes: Changes, name: string, part: string, query: URLSearchParams): Page {
  const blocked = changes[`forum/blocked/${name}`] === 'yes';
  const parts = nav('User', link('Posts', `/user/${name}`), link('Comments', `/user/${name}/comments`));
  const block = form('post', `/user/${name}/block`, {}, row(button(blocked ? 'Unblock' : 'Block')));
  if (part === 'comments') {
    const shown = takePage(
      world.comments.filter(({ author }) => author === name),
      query.get('page'),
      15,
    );
    const lines = shown.items.map(({ post: id, text, votes }) => [
      link(world.posts[id]!.title, `/f/${world.posts[id]!.forum}/${id}`),
      text,
      `${votes} votes`,
    ]);
    return shell(
      name,
      parts,
      block,
      table('Comments', ['Post', 'Comment', 'Votes'], lines),
      pager(shown, `/user/${name}/comments`, query),
    );
  }
  const shown = takePage(
    world.posts.filter(({ author }) => author === name),
    query.get('page'),
  );
  return shell(name, parts, block, postTable(shown.items), pager(shown, `/user/${name}`, query));
}

function own(changes: Changes): Page {
  return shell(FORUM_USER, row('Biography', changes['forum/bio'] ?? 'Nothing yet.'));
}

function submit({ forums }: ForumWorld, query: URLSearchParams): Page {
  return shell(
    'Submit',
    ...notice(query, 'missing', 'A post needs a title.'),
    form(
      'post',
      '/submit',
      {},
      ...fields(select('Forum', 'forum', forums, ''), textbox('Title', 'title'), textbox('Body', 'body')),
      row(button('Create Post')),
    ),
  );
}

function settings(changes: Changes, query: URLSearchParams): Page {
  return shell(
    'Settings',
    ...notice(query, 'saved', 'Saved.'),
    form(
      'post',
      '/settings',
      {},
      ...fields(textbox('Biography', 'bio', changes['forum/bio'] ?? '')),
      row(button('Save')),
    ),
  );
}

function post(world: ForumWorld, changes: Changes, path: string, sent: URLSearchParams): Posted | undefined {
  const [, section = '', name = '', id = '', part = ''] = path.split('/');
  if (section === 'f' && world.forums.includes(name)) {
    if (id === 'subscribe')
      return { redirect: `/f/${name}`, changes: toggleChange(changes, `forum/subscribed/${name}`) };
    const found = world.posts.find((one) => String(one.id) === id && one.forum === name);
    if (found && part === 'vote') {
      const vote = ['1', '-1', '0'].find((one) => one === sent.get('vote')) ?? '0';
      return { redirect: `/f/${name}/${id}`, changes: setChange(changes, `forum/vote/${id}`, vote, '0') };
    }
    if (found && part === 'comment') {
      return {
        redirect: `/f/${name}/${id}`,
        changes: appendChange(changes, `forum/comment/${id}`, oneLine(sent.get('text'))),
      };
    }
  }
  if (section === 'user' && id === 'block' && world.users.includes(name))
    return { redirect: `/user/${name}`, changes: toggleChange(changes, `forum/blocked/${name}`) };
  if (section === 'submit') {
    const title = oneLine(sent.get('title'));
    const where = world.forums.find((one) => one === sent.get('forum')) ?? world.forums[0]!;
    if (title === '') return { redirect: '/submit?missing=1', changes };
    return {
      redirect: `/f/${where}`,
      changes: appendChange(changes, `forum/post/${where}`, `${title}: ${oneLine(sent.get('body'))}`),
    };
  }
  if (section === 'settings')
    return { redirect: '/settings?saved=1', changes: setChange(changes, 'forum/bio', oneLine(sent.get('bio'))) };
  return undefined;
}
