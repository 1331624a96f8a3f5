/** Forum and code host of WebArena's sites: pages, sorting and filters, and everything a user may change there. */
import { describe, expect, it } from 'vitest';
import { contributors } from '../../../envs/webarena/sites/code.ts';
import { commentsOf, sortPosts } from '../../../envs/webarena/sites/forum.ts';
import { CODE_USER } from '../../../envs/webarena/worlds/code.ts';
import { FORUM_USER } from '../../../envs/webarena/worlds/forum.ts';
import { cellsOf, linksOf, siteOf, WORLD } from '../../support/web-pages.ts';

describe('the forum', () => {
  const { forum } = WORLD;
  const post = forum.posts[4]!;
  const POST = `/f/${post.forum}/${post.id}`;

  it('shows forums, posts, users and nothing else', () => {
    const site = siteOf('reddit');
    for (const path of [
      '/',
      '/forums',
      `/f/${post.forum}`,
      POST,
      `/user/${post.author}`,
      `/user/${post.author}/comments`,
      '/submit',
      '/settings',
      `/user/${FORUM_USER}`,
    ])
      expect([path, site.page(path).status]).toEqual([path, 200]);
    for (const path of [
      '/f/none',
      `/f/${post.forum}/99999`,
      '/user/nobody',
      '/x',
      `/f/${forum.forums.find((one) => one !== post.forum)}/${post.id}`,
    ])
      expect([path, site.page(path).status]).toEqual([path, 404]);
  });

  it('sorts posts by date, by votes, or by a mix of both', () => {
    const all = forum.posts.filter((one) => one.forum === post.forum);
    expect(sortPosts(all, 'New')).toEqual(all);
    const top = sortPosts(all, 'Top');
    expect(top.every((one, i) => i === 0 || top[i - 1]!.votes >= one.votes)).toBe(true);
    const hot = sortPosts(all, null);
    expect([...hot].sort((a, b) => a.id - b.id)).toEqual([...all].sort((a, b) => a.id - b.id));
    const first = [...linksOf(siteOf('reddit').page(`/f/${post.forum}?sort=Top`)).entries()].find(([, href]) =>
      /\/\d+$/.test(href),
    )!;
    expect(first[0]).toBe(top[0]!.title);
  });

  it('finds posts by all words of their titles', () => {
    const links = linksOf(siteOf('reddit').page(`/search?q=${encodeURIComponent(post.title.toUpperCase())}`));
    expect(links.get(post.title)).toBe(POST);
    expect(siteOf('reddit').text('/search?q=zzz')).toContain("'0 found, page 1 of 1'");
  });

  it('shows a post with votes and comments', () => {
    const text = siteOf('reddit').text(POST);
    expect(text).toContain(`'${post.votes} votes'`);
    expect(text).toContain(`Comments (${commentsOf(forum, post).length})`);
  });

  it('counts a vote up, down and back, one of each user', () => {
    const site = siteOf('reddit');
    const vote = (way: string) => site.send(`${POST}/vote`, { vote: way });
    expect(vote('1')).toBe(POST);
    vote('1');
    expect(site.text(POST)).toContain(`'${post.votes + 1} votes'`);
    vote('-1');
    expect(site.changes).toEqual({ [`forum/vote/${post.id}`]: '-1' });
    expect(site.text(POST)).toContain(`'${post.votes - 1} votes'`);
    vote('0');
    expect(site.changes).toEqual({});
    vote('100');
    expect(site.changes).toEqual({});
  });

  it('takes comments under the user’s name', () => {
    const site = siteOf('reddit');
    site.send(`${POST}/comment`, { text: 'Well  said' });
    expect(site.changes).toEqual({ [`forum/comment/${post.id}/1`]: 'Well said' });
    expect(site.text(POST)).toContain(`Comments (${commentsOf(forum, post).length + 1})`);
    site.send(`${POST}/comment`, { text: ' ' });
    expect(Object.keys(site.changes)).toHaveLength(1);
  });

  it('takes posts that have a title', () => {
    const site = siteOf('reddit');
    const [, where] = forum.forums;
    expect(site.send('/submit', { forum: where!, title: 'Hello', body: 'All' })).toBe(`/f/${where}`);
    expect(site.changes).toEqual({ [`forum/post/${where}/1`]: 'Hello: All' });
    expect(site.text(`/f/${where}`)).toContain("'Hello: All'");
    expect(site.send('/submit', { forum: where!, title: '', body: 'x' })).toBe('/submit?missing=1');
    expect(site.text('/submit?missing=1')).toContain('A post needs a title.');
  });

  it('subscribes to a forum, blocks a user, and takes both back', () => {
    const site = siteOf('reddit');
    for (const [path, key] of [
      [`/f/${post.forum}/subscribe`, `forum/subscribed/${post.forum}`],
      [`/user/${post.author}/block`, `forum/blocked/${post.author}`],
    ] as const) {
      site.send(path);
      expect(site.changes).toEqual({ [key]: 'yes' });
      site.send(path);
      expect(site.changes).toEqual({});
    }
    site.send(`/f/${post.forum}/subscribe`);
    expect(site.text(`/f/${post.forum}`)).toContain("button 'Unsubscribe'");
  });

  it('keeps a biography', () => {
    const site = siteOf('reddit');
    expect(site.text(`/user/${FORUM_USER}`)).toContain('Nothing yet.');
    expect(site.send('/settings', { bio: 'Gardener' })).toBe('/settings?saved=1');
    expect(site.text(`/user/${FORUM_USER}`)).toContain('Gardener');
  });

  it('does nothing with forms it has not', () => {
    const site = siteOf('reddit');
    for (const path of ['/f/none/subscribe', '/user/nobody/block', '/f/books/99999/vote', '/x'])
      expect(site.send(path, { vote: '1' })).toBe(path);
    expect(site.changes).toEqual({});
  });
});

describe('the code host', () => {
  const { code } = WORLD;
  const project = code.projects[2]!;
  const AT = `/${project.path}`;
  const issue = project.issues.find(({ state }) => state === 'open')!;

  it('shows a project in all its parts', () => {
    const site = siteOf('gitlab');
    for (const part of [
      '',
      '/issues',
      '/issues/new',
      '/merge_requests',
      '/commits',
      '/contributors',
      '/members',
      '/milestones',
      `/issues/${issue.iid}`,
      `/merge_requests/${project.mergeRequests[0]!.iid}`,
    ])
      expect([part, site.page(AT + part).status]).toEqual([part, 200]);
    for (const path of ['/none', '/none/none', `${AT}/none`, `${AT}/issues/999`, `${AT}/merge_requests/999`])
      expect([path, site.page(path).status]).toEqual([path, 404]);
  });

  it('finds projects by a part of their path', () => {
    expect(linksOf(siteOf('gitlab').page(`/?q=${project.name.toUpperCase()}`)).get(project.name)).toBe(AT);
  });

  it.each([
    ['', (one: typeof issue) => one.state === 'open'],
    ['?state=closed', (one: typeof issue) => one.state === 'closed'],
    ['?state=all&label=bug', (one: typeof issue) => one.labels.includes('bug')],
    [
      `?state=all&assignee=${issue.assignee}`,
      (one: typeof issue) => issue.assignee === '' || one.assignee === issue.assignee,
    ],
  ])('filters issues by %s', (query, keeps) => {
    const text = siteOf('gitlab').text(`${AT}/issues${query}`);
    expect(text).toContain(`'${project.issues.filter(keeps).length} found, page 1 of`);
  });

  it('lists issues newest first', () => {
    expect(project.issues.every((one, i) => i === 0 || project.issues[i - 1]!.date >= one.date)).toBe(true);
    expect(project.commits.every((one, i) => i === 0 || project.commits[i - 1]!.date >= one.date)).toBe(true);
  });

  it('closes an issue and opens it again', () => {
    const site = siteOf('gitlab');
    site.send(`${AT}/issues/${issue.iid}/state`);
    expect(site.changes).toEqual({ [`code/issue-state/${project.path}/${issue.iid}`]: 'closed' });
    expect(site.text(`${AT}/issues/${issue.iid}`)).toContain("button 'Reopen issue'");
    site.send(`${AT}/issues/${issue.iid}/state`);
    expect(site.changes).toEqual({});
  });

  it('opens an issue with title, assignee and due date', () => {
    const site = siteOf('gitlab');
    expect(site.send(`${AT}/issues/new`, { title: 'Leak', assignee: 'nobody', due: '2023-07-01' })).toBe(
      `${AT}/issues`,
    );
    expect(site.changes).toEqual({ [`code/issue/${project.path}/1`]: 'Leak for nobody by 2023-07-01' });
    site.send(`${AT}/issues/new`, { title: '', assignee: 'nobody', due: '' });
    expect(Object.keys(site.changes)).toHaveLength(1);
  });

  it('takes comments on issues and merge requests', () => {
    const site = siteOf('gitlab');
    const { iid } = project.mergeRequests[0]!;
    site.send(`${AT}/issues/${issue.iid}/comment`, { text: 'one' });
    site.send(`${AT}/merge_requests/${iid}/comment`, { text: 'two' });
    expect(Object.values(site.changes)).toEqual(['one', 'two']);
    expect(site.text(`${AT}/merge_requests/${iid}`)).toContain("'two'");
  });

  it('counts contributors by commits, and shows them by name', () => {
    const counted = contributors(project);
    expect(counted.reduce((sum, { commits }) => sum + commits, 0)).toBe(project.commits.length);
    expect(counted.every((one, i) => i === 0 || counted[i - 1]!.commits >= one.commits)).toBe(true);
    const text = siteOf('gitlab').text(`${AT}/contributors`);
    const shown = [...text.matchAll(/cell '([a-z.]+)'/g)].map(([, name]) => name);
    expect(shown).toEqual([...shown].sort());
  });

  it('filters commits by author, and reports an unknown author', () => {
    const { author } = project.commits[0]!;
    const made = project.commits.filter((one) => one.author === author).length;
    expect(siteOf('gitlab').text(`${AT}/commits?author=${author}`)).toContain(`'${made} found`);
    expect(siteOf('gitlab').text(`${AT}/commits?author=nobody`)).toContain('No such author.');
  });

  it('invites users that are not members yet', () => {
    const site = siteOf('gitlab');
    const stranger = code.users.find((user) => !project.members.some((one) => one.user === user))!;
    site.send(`${AT}/members`, { user: stranger, role: 'Developer' });
    site.send(`${AT}/members`, { user: project.members[0]!.user, role: 'Guest' });
    site.send(`${AT}/members`, { user: 'nobody', role: 'Guest' });
    expect(site.changes).toEqual({ [`code/member/${project.path}/${stranger}`]: 'Developer' });
    expect(site.text(`${AT}/members`)).toContain(`cell '${stranger}'`);
  });

  it('stars and unstars, forks once, and makes milestones', () => {
    const site = siteOf('gitlab');
    site.send(`${AT}/star`);
    expect(site.text(AT)).toContain(`'${project.stars + 1} stars'`);
    site.send(`${AT}/star`);
    site.send(`${AT}/fork`);
    site.send(`${AT}/fork`);
    site.send(`${AT}/milestones`, { title: 'v2', start: '2023-07-01', due: '2023-08-01' });
    expect(site.changes).toEqual({
      [`code/fork/${project.path}`]: 'yes',
      [`code/milestone/${project.path}/1`]: 'v2 from 2023-07-01 to 2023-08-01',
    });
  });

  it('makes projects of a sensible name', () => {
    const site = siteOf('gitlab');
    for (const name of ['', 'Big', 'a b', 'x'.repeat(41)])
      expect(site.send('/-/new', { name })).toBe('/-/new?missing=1');
    expect(site.send('/-/new', { name: 'my-tool' })).toBe(`/${CODE_USER}/my-tool`);
    expect(site.text(`/${CODE_USER}/my-tool`)).toContain('An empty project.');
  });

  it('keeps a status', () => {
    const site = siteOf('gitlab');
    site.send('/-/profile', { status: 'Away' });
    expect(cellsOf(site.page('/-/profile'), 'textbox')).toMatchObject([{ value: 'Away' }]);
  });
});
