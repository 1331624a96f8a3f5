/** Tasks in the forum. */
import type { Rng } from '../../../src/core/rng.ts';
import { commentsOf, sortPosts } from '../sites/forum.ts';
import type { Embedded } from '../worlds/embedded.ts';
import { choose, click, enter, fill, pages, press, templatesOf } from './template.ts';

const REPLIES = [
  'I agree with this',
  'Please tell us more',
  'This is wrong',
  'Thank you for sharing',
  'Where did you find it',
];
const BIOS = ['I read in the evening', 'Two cats and a garden', 'Walking every weekend', 'Learning to cook'];

/** A forum with its posts in an order, and the steps to the list. */
function drawSorted(world: Embedded, rng: Rng, by: string) {
  const name = rng.pick(world.forum.forums);
  const posts = sortPosts(
    world.forum.posts.filter(({ forum }) => forum === name),
    by,
  );
  return { name, posts, open: [click('Forums'), click(name), choose('Sort by', by), press('Sort')] };
}

function post(world: Embedded, rng: Rng) {
  const one = rng.pick(world.forum.posts);
  return { one, search: enter('Search posts', one.title), open: [enter('Search posts', one.title), click(one.title)] };
}

export const forum = templatesOf('reddit', 'reddit', {
  'newest-author'(world, rng) {
    const { name, posts, open } = drawSorted(world, rng, 'New');
    return {
      intent: `Who wrote the newest post in the forum "${name}"?`,
      answer: { type: 'text', value: posts[0]!.author },
      plan: open,
    };
  },
  'comment-count'(world, rng) {
    const { one, open } = post(world, rng);
    return {
      intent: `How many comments has the post "${one.title}" got?`,
      answer: { type: 'number', value: commentsOf(world.forum, one).length },
      plan: open,
    };
  },
  'downvoted-comments'(world, rng) {
    const { one, search } = post(world, rng);
    const all = world.forum.comments.filter(({ author }) => author === one.author);
    const last = all.length > 15 ? pages(all.length - 1, 15) : [];
    const value = all.filter(({ votes }) => votes < 0).length;
    return {
      intent: `How many comments with negative votes has the author of the post "${one.title}" written?`,
      answer: { type: 'number', value },
      plan: [search, click(one.author), click('Comments'), ...last],
    };
  },
  'open-top'(world, rng) {
    const { name, posts, open } = drawSorted(world, rng, 'Top');
    return {
      intent: `Open the top post of the forum "${name}".`,
      url: `/f/${name}/${posts[0]!.id}`,
      plan: [...open, click(posts[0]!.title)],
    };
  },
  'upvote-newest'(world, rng) {
    const { name, posts, open } = drawSorted(world, rng, 'New');
    return {
      intent: `Upvote the newest post in the forum "${name}".`,
      changes: { [`forum/vote/${posts[0]!.id}`]: '1' },
      plan: [...open, click(posts[0]!.title), press('Upvote')],
    };
  },
  comment(world, rng) {
    const { one, open } = post(world, rng);
    const text = rng.pick(REPLIES);
    return {
      intent: `Comment "${text}" on the post "${one.title}".`,
      changes: { [`forum/comment/${one.id}/1`]: text },
      plan: [...open, fill('Your comment', text), press('Post Comment')],
    };
  },
  'create-post'(world, rng) {
    const name = rng.pick(world.forum.forums);
    const [title, body] = [`News about ${rng.pick(world.forum.forums)}`, rng.pick(REPLIES)];
    return {
      intent: `Create a post in the forum "${name}" with the title "${title}" and the body "${body}".`,
      changes: { [`forum/post/${name}/1`]: `${title}: ${body}` },
      plan: [click('Submit'), choose('Forum', name), fill('Title', title), fill('Body', body), press('Create Post')],
    };
  },
  subscribe(world, rng) {
    const name = rng.pick(world.forum.forums);
    return {
      intent: `Subscribe to the forum "${name}".`,
      changes: { [`forum/subscribed/${name}`]: 'yes' },
      plan: [click('Forums'), click(name), press('Subscribe')],
    };
  },
  bio(_world, rng) {
    const text = rng.pick(BIOS);
    return {
      intent: `Change my biography to "${text}".`,
      changes: { 'forum/bio': text },
      plan: [click('Settings'), fill('Biography', text), press('Save')],
    };
  },
  email(world, rng) {
    const { one, search } = post(world, rng);
    return {
      intent: `What is the email address of the author of the post "${one.title}"?`,
      answer: { type: 'none' },
      url: `/user/${one.author}`,
      plan: [search, click(one.author)],
    };
  },
  'block-author*'(world, rng) {
    const { one, search } = post(world, rng);
    return {
      intent: `Block the author of the post "${one.title}".`,
      changes: { [`forum/blocked/${one.author}`]: 'yes' },
      plan: [search, click(one.author), press('Block')],
    };
  },
  'downvote-top*'(world, rng) {
    const { name, posts, open } = drawSorted(world, rng, 'Top');
    return {
      intent: `Downvote the top post of the forum "${name}".`,
      changes: { [`forum/vote/${posts[0]!.id}`]: '-1' },
      plan: [...open, click(posts[0]!.title), press('Downvote')],
    };
  },
});
