/** Code host: projects with issues, merge requests, commits, members and milestones; the user's own page. */
import {
  type Block,
  button,
  fields,
  form,
  heading,
  link,
  main,
  nav,
  type Page,
  page,
  row,
  searchbox,
  select,
  status,
  table,
  textbox,
} from '../page.ts';
import { CODE_USER, type CodeWorld, type Issue, type MergeRequest, type Project, ROLES } from '../worlds/code.ts';
import { LABELS } from '../worlds/words.ts';
import { pager, takePage } from './paging.ts';
import {
  appendChange,
  type Changes,
  listMade,
  notice,
  oneLine,
  type Posted,
  renderNotFound,
  type Site,
  setChange,
  toggleChange,
} from './site.ts';

export const code: Site = {
  get: (world, ...request) => get(world.code, ...request),
  post: (world, ...request) => post(world.code, ...request),
};

function get(world: CodeWorld, changes: Changes, path: string, query: URLSearchParams): Page {
  const [, owner = '', name = '', section = '', item = ''] = path.split('/');
  if (owner === '') return projects(world, query);
  if (owner === '-' && name === 'profile') return profile(changes, query);
  if (owner === '-' && name === 'new') return newProject(query);
  if (owner === CODE_USER && listMade(changes, 'code/project').includes(name))
    return shell(name, row('An empty project.'));
  const project = world.projects.find((one) => one.path === `${owner}/${name}`);
  if (!project) return renderNotFound();
  switch (section) {
    case '':
      return projectPage(changes, project);
    case 'issues': {
      if (item === '') return issues(changes, project, query);
      if (item === 'new') return newIssue(world, project);
      const issue = project.issues.find(({ iid }) => String(iid) === item);
      return issue ? issuePage(changes, project, issue) : renderNotFound();
    }
    case 'merge_requests': {
      if (item === '') return mergeRequests(project, query);
      const request = project.mergeRequests.find(({ iid }) => String(iid) === item);
      return request ? requestPage(changes, project, request) : renderNotFound();
    }
    case 'commits':
      return commits(world, project, query);
    case 'contributors':
      return contributorsPage(project);
    case 'members':
      return members(world, changes, project);
    case 'milestones':
      return milestones(changes, project);
    default:
      return renderNotFound();
  }
}

function shell(title: string, ...blocks: readonly Block[]): Page {
  return page(
    `${title} · Forge`,
    row(link('Forge', '/'), link('New project', '/-/new'), link('Profile', '/-/profile')),
    form('get', '/', {}, row(searchbox('Search projects', 'q'), button('Search'))),
    main(title, ...blocks),
  );
}

const PARTS = [
  ['Project', ''],
  ['Issues', '/issues'],
  ['Merge requests', '/merge_requests'],
  ['Commits', '/commits'],
  ['Contributors', '/contributors'],
  ['Members', '/members'],
  ['Milestones', '/milestones'],
] as const;

function inside(project: Project, title: string, ...blocks: readonly Block[]): Page {
  return shell(title, nav(project.path, ...PARTS.map(([name, at]) => link(name, `/${project.path}${at}`))), ...blocks);
}

function projects(world: CodeWorld, query: URLSearchParams): Page {
  const wanted = oneLine(query.get('q')).toLowerCase();
  const found = world.projects.filter(({ path }) => path.includes(wanted));
  return shell(
    'Projects',
    table(
      'Projects',
      ['Project', 'Owner', 'Open issues'],
      found.map((one) => [
        link(one.name, `/${one.path}`),
        one.owner,
        one.issues.filter(({ state }) => state === 'open').length,
      ]),
    ),
  );
}

function projectPage(changes: Changes, project: Project): Page {
  const starred = changes[`code/star/${project.path}`] === 'yes';
  const forked = changes[`code/fork/${project.path}`] === 'yes';
  return inside(
    project,
    project.path,
    form(
      'post',
      `/${project.path}/star`,
      {},
      row(button(starred ? 'Unstar' : 'Star'), `${project.stars + (starred ? 1 : 0)} stars`),
    ),
    form('post', `/${project.path}/fork`, {}, row(button('Fork'), forked ? 'You have a fork.' : 'You have no fork.')),
    row('Clone with SSH', `git clone git@code.test:${project.path}.git`),
    row('Clone with HTTP', `git clone http://code.test/${project.path}.git`),
    row(heading('README', 2)),
    row(`The ${project.name} project. See issues for what is planned.`),
  );
}

function issues(changes: Changes, project: Project, query: URLSearchParams): Page {
  const state = ['open', 'closed', 'all'].find((one) => one === query.get('state')) ?? 'open';
  const label = query.get('label') ?? 'Any';
  const assignee = oneLine(query.get('assignee'));
  const found = project.issues.filter((one) => {
    return (
      (state === 'all' || one.state === state) &&
      (label === 'Any' || one.labels.includes(label)) &&
      (assignee === '' || one.assignee === assignee)
    );
  });
  const shown = takePage(found, query.get('page'));
  const at = `/${project.path}/issues`;
  const own = listMade(changes, `code/issue/${project.path}`).map((text) => row('Your issue', text));
  return inside(
    project,
    'Issues',
    row(link('New issue', `${at}/new`)),
    form(
      'get',
      at,
      {},
      row(
        'State',
        select('State', 'state', ['open', 'closed', 'all'], state),
        'Label',
        select('Label', 'label', ['Any', ...LABELS], label),
        'Assignee',
        textbox('Assignee', 'assignee', assignee),
        button('Filter'),
      ),
    ),
    ...own,
    table(
      'Issues',
      ['Issue', 'Labels', 'Assignee', 'Created'],
      shown.items.map((one) => [
        link(one.title, `${at}/${one.iid}`),
        one.labels.join(', '),
        one.assignee === '' ? 'nobody' : one.assignee,
        one.date,
      ]),
    ),
    pager(shown, at, query),
  );
}

function newIssue({ users }: CodeWorld, project: Project): Page {
  const team = project.members.map(({ user }) => user).filter((user) => users.includes(user));
  return inside(
    project,
    'New issue',
    form(
      'post',
      `/${project.path}/issues/new`,
      {},
      ...fields(
        textbox('Title', 'title'),
        select('Assignee', 'assignee', ['nobody', ...team], ''),
        textbox('Due date (YYYY-MM-DD)', 'due'),
      ),
      row(button('Create issue')),
    ),
  );
}

/** State of an issue with the user's change. */
function stateOf(changes: Changes, project: Project, { iid, state }: Issue): string {
  return changes[`code/issue-state/${project.path}/${iid}`] ?? state;
}

function issuePage(changes: Changes, project: Project, issue: Issue): Page {
  const at = `/${project.path}/issues/${issue.iid}`;
  const state = stateOf(changes, project, issue);
  const own = listMade(changes, `code/issue-comment/${project.path}/${issue.iid}`);
  return inside(
    project,
    issue.title,
    row(`Issue ${issue.iid}`, state, `by ${issue.author}`, issue.date),
    row('Assignee', issue.assignee === '' ? 'nobody' : issue.assignee),
    row('Labels', issue.labels.join(', ')),
    form('post', `${at}/state`, {}, row(button(state === 'open' ? 'Close issue' : 'Reopen issue'))),
    ...own.map((text) => row(CODE_USER, text)),
    form('post', `${at}/comment`, {}, row(textbox('Comment', 'text'), button('Comment'))),
  );
}

function mergeRequests(project: Project, query: URLSearchParams): Page {
  const shown = takePage(project.mergeRequests, query.get('page'));
  const at = `/${project.path}/merge_requests`;
  return inside(
    project,
    'Merge requests',
    table(
      'Merge requests',
      ['Merge request', 'Author', 'State'],
      shown.items.map((one) => [link(one.title, `${at}/${one.iid}`), one.author, one.state]),
    ),
    pager(shown, at, query),
  );
}

function requestPage(changes: Changes, project: Project, { iid, title, author, state }: MergeRequest): Page {
  const at = `/${project.path}/merge_requests/${iid}`;
  const own = listMade(changes, `code/mr-comment/${project.path}/${iid}`);
  return inside(
    project,
    title,
    row(`Merge request ${iid}`, state, `by ${author}`),
    ...own.map((text) => row(CODE_USER, text)),
    form('post', `${at}/comment`, {}, row(textbox('Comment', 'text'), button('Comment'))),
  );
}

function commits(world: CodeWorld, project: Project, query: URLSearchParams): Page {
  const author = oneLine(query.get('author'));
  const found = project.commits.filter((one) => author === '' || one.author === author);
  const shown = takePage(found, query.get('page'), 20);
  const at = `/${project.path}/commits`;
  const known = world.users.includes(author) || author === '' ? [] : [row(status('No such author.'))];
  return inside(
    project,
    'Commits',
    form('get', at, {}, row(textbox('Author', 'author', author), button('Filter'))),
    ...known,
    table(
      'Commits',
      ['Message', 'Author', 'Date'],
      shown.items.map(({ message, author: by, date }) => [message, by, date]),
    ),
    pager(shown, at, query),
  );
}

/** Commits by author, most first. */
export function contributors({ commits: all }: Project): { user: string; commits: number }[] {
  const counts = new Map<string, number>();
  for (const { author } of all) counts.set(author, (counts.get(author) ?? 0) + 1);
  return [...counts]
    .map(([user, made]) => ({ user, commits: made }))
    .sort((a, b) => b.commits - a.commits || (a.user < b.user ? -1 : 1));
}

function contributorsPage(project: Project): Page {
  const lines = contributors(project).sort((a, b) => (a.user < b.user ? -1 : 1));
  return inside(
    project,
    'Contributors',
    table(
      'Contributors',
      ['User', 'Commits'],
      lines.map(({ user, commits: made }) => [user, made]),
    ),
  );
}

function members(world: CodeWorld, changes: Changes, project: Project): Page {
  const added = world.users.flatMap((user) => {
    const role = changes[`code/member/${project.path}/${user}`];
    return role === undefined ? [] : [[user, role]];
  });
  const lines = [...project.members.map(({ user, role }) => [user, role]), ...added];
  return inside(
    project,
    'Members',
    table('Members', ['User', 'Role'], lines),
    form(
      'post',
      `/${project.path}/members`,
      {},
      ...fields(textbox('User name', 'user'), select('Role', 'role', ROLES, '')),
      row(button('Invite')),
    ),
  );
}

function milestones(changes: Changes, project: Project): Page {
  const made = listMade(changes, `code/milestone/${project.path}`);
  return inside(
    project,
    'Milestones',
    ...made.map((text) => row('Milestone', text)),
    row(`${made.length} milestones`),
    form(
      'post',
      `/${project.path}/milestones`,
      {},
      ...fields(textbox('Title', 'title'), textbox('Start date', 'start'), textbox('Due date', 'due')),
      row(button('Create milestone')),
    ),
  );
}

function profile(changes: Changes, query: URLSearchParams): Page {
  return shell(
    'Profile',
    ...notice(query, 'saved', 'Profile saved.'),
    row('User', CODE_USER),
    form(
      'post',
      '/-/profile',
      {},
      ...fields(textbox('Status', 'status', changes['code/status'] ?? '')),
      row(button('Update profile')),
    ),
  );
}

function newProject(query: URLSearchParams): Page {
  return shell(
    'New project',
    ...notice(query, 'missing', 'A project needs a name of small letters.'),
    form('post', '/-/new', {}, ...fields(textbox('Project name', 'name')), row(button('Create project'))),
  );
}

function post(world: CodeWorld, changes: Changes, path: string, sent: URLSearchParams): Posted | undefined {
  const [, owner = '', name = '', section = '', item = '', part = ''] = path.split('/');
  const append = (key: string, text: string, to: string): Posted => {
    return { redirect: to, changes: appendChange(changes, key, text) };
  };
  if (path === '/-/profile')
    return { redirect: '/-/profile?saved=1', changes: setChange(changes, 'code/status', oneLine(sent.get('status'))) };
  if (path === '/-/new') {
    const wanted = oneLine(sent.get('name'));
    return /^[a-z0-9-]{1,40}$/.test(wanted)
      ? append('code/project', wanted, `/${CODE_USER}/${wanted}`)
      : { redirect: '/-/new?missing=1', changes };
  }
  const project = world.projects.find((one) => one.path === `${owner}/${name}`);
  if (!project) return undefined;
  const at = `/${project.path}`;
  const text = oneLine(sent.get('text'));
  if (section === 'star') return { redirect: at, changes: toggleChange(changes, `code/star/${project.path}`) };
  if (section === 'fork') return { redirect: at, changes: setChange(changes, `code/fork/${project.path}`, 'yes') };
  if (section === 'issues' && item === 'new') {
    const title = oneLine(sent.get('title'));
    const made = title === '' ? '' : `${title} for ${oneLine(sent.get('assignee'))} by ${oneLine(sent.get('due'))}`;
    return append(`code/issue/${project.path}`, made, `${at}/issues`);
  }
  const issue = project.issues.find(({ iid }) => section === 'issues' && String(iid) === item);
  if (issue && part === 'comment')
    return append(`code/issue-comment/${project.path}/${item}`, text, `${at}/issues/${item}`);
  if (issue && part === 'state') {
    const now = stateOf(changes, project, issue) === 'open' ? 'closed' : 'open';
    return {
      redirect: `${at}/issues/${item}`,
      changes: setChange(changes, `code/issue-state/${project.path}/${item}`, now, issue.state),
    };
  }
  if (section === 'merge_requests' && part === 'comment')
    return append(`code/mr-comment/${project.path}/${item}`, text, `${at}/merge_requests/${item}`);
  if (section === 'members') {
    const user = oneLine(sent.get('user'));
    const isNew = world.users.includes(user) && !project.members.some((one) => one.user === user);
    return {
      redirect: `${at}/members`,
      changes: isNew ? setChange(changes, `code/member/${project.path}/${user}`, oneLine(sent.get('role'))) : changes,
    };
  }
  if (section === 'milestones') {
    const title = oneLine(sent.get('title'));
    return append(
      `code/milestone/${project.path}`,
      title === '' ? '' : `${title} from ${oneLine(sent.get('start'))} to ${oneLine(sent.get('due'))}`,
      `${at}/milestones`,
    );
  }
  return undefined;
}
