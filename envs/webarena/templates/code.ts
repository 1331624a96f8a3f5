/** Tasks on the code host. */
import type { Rng } from '../../../src/core/rng.ts';
import { contributors } from '../sites/code.ts';
import { ROLES } from '../worlds/code.ts';
import type { Embedded } from '../worlds/embedded.ts';
import { COMPONENTS, LABELS, PROBLEMS, WHENS } from '../worlds/words.ts';
import { choose, click, fill, pages, press, templatesOf } from './template.ts';

const NOTES = [
  'Looks good to me',
  'Please add a test',
  'This needs a rebase',
  'Can we split this',
  'Fixed on my machine',
];
const STATUSES = ['On holiday', 'Reviewing', 'Busy until Friday', 'Writing documentation'];

function project(world: Embedded, rng: Rng) {
  const one = rng.pick(world.code.projects);
  return { one, open: click(one.name) };
}

export const code = templatesOf('gitlab', 'gitlab', {
  'commits-of'(world, rng) {
    const { one, open } = project(world, rng);
    const { author } = rng.pick(one.commits);
    const value = one.commits.filter((commit) => commit.author === author).length;
    return {
      intent: `How many commits has "${author}" made to the project "${one.name}"?`,
      answer: { type: 'number', value },
      plan: [open, click('Commits'), fill('Author', author), press('Filter')],
    };
  },
  'commits-on-day'(world, rng) {
    const { one, open } = project(world, rng);
    const { author, date } = rng.pick(one.commits);
    const value = one.commits.filter((commit) => commit.author === author && commit.date === date).length;
    return {
      intent: `How many commits did "${author}" make to the project "${one.name}" on "${date}"?`,
      answer: { type: 'number', value },
      plan: [open, click('Commits'), fill('Author', author), press('Filter')],
    };
  },
  'top-contributor'(world, rng) {
    const { one, open } = project(world, rng);
    const [first, second] = contributors(one);
    if (!first || first.commits === second?.commits) return undefined;
    const count = rng.int(2) === 0;
    return {
      intent: count
        ? `How many commits has the top contributor of the project "${one.name}" made?`
        : `Who is the top contributor of the project "${one.name}"?`,
      answer: count ? { type: 'number', value: first.commits } : { type: 'text', value: first.user },
      plan: [open, click('Contributors')],
    };
  },
  clone(world, rng) {
    const { one, open } = project(world, rng);
    const ssh = rng.int(2) === 0;
    const value = ssh ? `git clone git@code.test:${one.path}.git` : `git clone http://code.test/${one.path}.git`;
    return {
      intent: `What is the command to clone the project "${one.name}" with ${ssh ? 'SSH' : 'HTTP'}?`,
      answer: { type: 'text', value },
      plan: [open],
    };
  },
  'open-issues'(world, rng) {
    const { one, open } = project(world, rng);
    const label = rng.pick(LABELS);
    const value = one.issues.filter(({ state, labels }) => state === 'open' && labels.includes(label)).length;
    return {
      intent: `How many open issues of the project "${one.name}" have the label "${label}"?`,
      answer: { type: 'number', value },
      plan: [open, click('Issues'), choose('Label', label), press('Filter')],
    };
  },
  'is-closed'(world, rng) {
    const { one, open } = project(world, rng);
    const at = rng.int(Math.min(20, one.issues.length));
    const { title, state } = one.issues[at]!;
    return {
      intent: `Is the issue "${title}" of the project "${one.name}" closed?`,
      answer: { type: 'yesno', value: state === 'closed' },
      plan: [open, click('Issues'), choose('State', 'all'), press('Filter'), ...pages(at), click(title)],
    };
  },
  'create-issue'(world, rng) {
    const { one, open } = project(world, rng);
    const title = `${rng.pick(COMPONENTS)} ${rng.pick(PROBLEMS)} after ${rng.pick(WHENS)}`;
    const [{ user }, due] = [rng.pick(one.members), `2023-0${7 + rng.int(3)}-${10 + rng.int(19)}`];
    return {
      intent: `Create an issue in the project "${one.name}" with the title "${title}", assigned to "${user}" and due on "${due}".`,
      changes: { [`code/issue/${one.path}/1`]: `${title} for ${user} by ${due}` },
      plan: [
        open,
        click('Issues'),
        click('New issue'),
        fill('Title', title),
        choose('Assignee', user),
        fill('Due date (YYYY-MM-DD)', due),
        press('Create issue'),
      ],
    };
  },
  'comment-on-request'(world, rng) {
    const { one, open } = project(world, rng);
    const at = rng.pick(one.mergeRequests);
    const note = rng.pick(NOTES);
    return {
      intent: `Comment "${note}" on the merge request "${at.title}" of the project "${one.name}".`,
      changes: { [`code/mr-comment/${one.path}/${at.iid}/1`]: note },
      plan: [open, click('Merge requests'), click(at.title), fill('Comment', note), press('Comment')],
    };
  },
  invite(world, rng) {
    const { one, open } = project(world, rng);
    const [user, role] = [rng.pick(world.code.users), rng.pick(ROLES)];
    if (one.members.some((member) => member.user === user)) return undefined;
    return {
      intent: `Invite "${user}" to the project "${one.name}" with the role "${role}".`,
      changes: { [`code/member/${one.path}/${user}`]: role },
      plan: [open, click('Members'), fill('User name', user), choose('Role', role), press('Invite')],
    };
  },
  milestone(world, rng) {
    const { one, open } = project(world, rng);
    const title = `${rng.pick(COMPONENTS)} release`;
    const [start, due] = [`2023-07-${10 + rng.int(19)}`, `2023-09-${10 + rng.int(19)}`];
    return {
      intent: `Create a milestone in the project "${one.name}" with the title "${title}", from "${start}" to "${due}".`,
      changes: { [`code/milestone/${one.path}/1`]: `${title} from ${start} to ${due}` },
      plan: [
        open,
        click('Milestones'),
        fill('Title', title),
        fill('Start date', start),
        fill('Due date', due),
        press('Create milestone'),
      ],
    };
  },
  fork(world, rng) {
    const { one, open } = project(world, rng);
    return {
      intent: `Fork the project "${one.name}".`,
      changes: { [`code/fork/${one.path}`]: 'yes' },
      plan: [open, press('Fork')],
    };
  },
  status(_world, rng) {
    const text = rng.pick(STATUSES);
    return {
      intent: `Set my status to "${text}".`,
      changes: { 'code/status': text },
      plan: [click('Profile'), fill('Status', text), press('Update profile')],
    };
  },
  phone(world, rng) {
    const { one, open } = project(world, rng);
    return {
      intent: `What is the phone number of the owner of the project "${one.name}"?`,
      answer: { type: 'none' },
      url: `/${one.path}/members`,
      plan: [open, click('Members')],
    };
  },
  'newest-assignee*'(world, rng) {
    const { one, open } = project(world, rng);
    const label = rng.pick(LABELS);
    const newest = one.issues.find(({ state, labels }) => state === 'open' && labels.includes(label));
    if (!newest || newest.assignee === '') return undefined;
    return {
      intent: `Who is assigned to the newest open issue with the label "${label}" in the project "${one.name}"?`,
      answer: { type: 'text', value: newest.assignee },
      plan: [open, click('Issues'), choose('Label', label), press('Filter')],
    };
  },
  'close-issue*'(world, rng) {
    const { one, open } = project(world, rng);
    const all = one.issues.filter(({ state }) => state === 'open');
    const at = rng.int(Math.min(10, all.length));
    const issue = all[at]!;
    return {
      intent: `Close the issue "${issue.title}" of the project "${one.name}".`,
      changes: { [`code/issue-state/${one.path}/${issue.iid}`]: 'closed' },
      plan: [open, click('Issues'), click(issue.title), press('Close issue')],
    };
  },
});
