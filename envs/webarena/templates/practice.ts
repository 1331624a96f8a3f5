/**
 * Practice: short tasks in the worlds of training, a few turns each: a page, a list that is filtered, one field, two where a
 * task of training has three. They are no part of the table's 372 and 50; the set `train-and-practice` has them beside the
 * former. Tests have no template of their own.
 */
import type { Rng } from '../../../src/core/rng.ts';
import { sortPosts } from '../sites/forum.ts';
import { ownOrders, reviewsOf } from '../sites/shop.ts';
import { ROLES } from '../worlds/code.ts';
import { slug } from '../worlds/draw.ts';
import type { Embedded } from '../worlds/embedded.ts';
import { ORDER_STATUSES } from '../worlds/shop.ts';
import { CATEGORIES, COMPONENTS, LABELS, PLACE_KINDS, PROBLEMS, WHENS } from '../worlds/words.ts';
import { choose, click, enter, fill, type Instance, press, type Template, templatesOf } from './template.ts';

/** A page behind one or two links: what it is called, its address, the links. */
type Page = readonly [called: string, url: string, ...links: string[]];

/** Draws one of some pages. */
function onePage(pages: readonly Page[]) {
  return (_world: Embedded, rng: Rng): Instance => {
    const [called, url, ...links] = rng.pick(pages);
    return { intent: `Show me ${called}.`, url, plan: links.map((name) => click(name)) };
  };
}

/** A product, and the steps to its page. */
function product(world: Embedded, rng: Rng) {
  const one = rng.pick(world.shop.products);
  return { one, open: [enter('Search', one.name), click(one.name)] };
}

const shopping = templatesOf('shopping', 'shopping', {
  'practice-page': onePage([
    ['my orders', '/account/orders', 'My Account', 'My Orders'],
    ['my wish list', '/account/wishlist', 'My Wish List'],
    ['my cart', '/cart', 'My Cart'],
    ['my address', '/account/address', 'My Account', 'Address'],
    ['the newsletter', '/account/newsletter', 'My Account', 'Newsletter'],
  ]),
  'practice-category'(_world, rng) {
    const { name } = rng.pick(CATEGORIES);
    return { intent: `Show me the category "${name}".`, url: `/category/${slug(name)}`, plan: [click(name)] };
  },
  'practice-product'(world, rng) {
    const { one, open } = product(world, rng);
    return { intent: `Show me "${one.name}".`, url: `/product/${one.slug}`, plan: open };
  },
  'practice-reviews'(world, rng) {
    const { one, open } = product(world, rng);
    return {
      intent: `Show me the reviews of "${one.name}".`,
      url: `/product/${one.slug}/reviews`,
      plan: [...open, click(`Reviews (${reviewsOf(world.shop, one).length})`)],
    };
  },
  'practice-order'(world, rng) {
    const { number } = rng.pick(ownOrders(world.shop).slice(0, 10));
    return {
      intent: `Show me my order "${number}".`,
      url: `/account/order/${number}`,
      plan: [click('My Account'), click('My Orders'), click(number)],
    };
  },
  'practice-cart'(world, rng) {
    const { one, open } = product(world, rng);
    return {
      intent: `Add "${one.name}" to my cart.`,
      changes: { [`shop/cart/${one.slug}|${one.options[0]!}`]: '1' },
      plan: [...open, press('Add to Cart')],
    };
  },
  'practice-option'(world, rng) {
    const { one, open } = product(world, rng);
    const option = rng.pick(one.options);
    return {
      intent: `Add "${one.name}" with the option "${option}" to my cart.`,
      changes: { [`shop/cart/${one.slug}|${option}`]: '1' },
      plan: [...open, choose('Option', option), press('Add to Cart')],
    };
  },
  'practice-quantity'(world, rng) {
    const { one, open } = product(world, rng);
    const quantity = String(2 + rng.int(4));
    return {
      intent: `Add ${quantity} of "${one.name}" to my cart.`,
      changes: { [`shop/cart/${one.slug}|${one.options[0]!}`]: quantity },
      plan: [...open, fill('Quantity', quantity), press('Add to Cart')],
    };
  },
  'practice-order-one'(world, rng) {
    const { one, open } = product(world, rng);
    return {
      intent: `Order "${one.name}".`,
      changes: { 'shop/order/1': `${one.slug}|${one.options[0]!}|1 by Standard` },
      plan: [...open, press('Add to Cart'), click('My Cart'), click('Proceed to Checkout'), press('Place Order')],
    };
  },
  'practice-checkout'(world, rng) {
    const { one, open } = product(world, rng);
    return {
      intent: `Add "${one.name}" to my cart and show me the checkout.`,
      url: '/checkout',
      changes: { [`shop/cart/${one.slug}|${one.options[0]!}`]: '1' },
      plan: [...open, press('Add to Cart'), click('My Cart'), click('Proceed to Checkout')],
    };
  },
  'practice-shipping'(world, rng) {
    const { one, open } = product(world, rng);
    const shipping = rng.pick(['Express', 'Pick up']);
    return {
      intent: `Order "${one.name}" with the shipping "${shipping}".`,
      changes: { 'shop/order/1': `${one.slug}|${one.options[0]!}|1 by ${shipping}` },
      plan: [
        ...open,
        press('Add to Cart'),
        click('My Cart'),
        click('Proceed to Checkout'),
        choose('Shipping', shipping),
        press('Place Order'),
      ],
    };
  },
  'practice-draft'(_world, rng) {
    const message = rng.pick(['Where is my parcel', 'I like your shop', 'The colour is wrong']);
    return {
      intent: `Save a draft to the shop with the message "${message}".`,
      changes: { 'shop/contact/reason': 'Question', 'shop/contact/message': message },
      plan: [click('Contact Us'), fill('Message', message), press('Save Draft')],
    };
  },
  'practice-draft-reason'(_world, rng) {
    const [reason, message] = [
      rng.pick(['Refund', 'Damage', 'Delivery']),
      rng.pick(['I wait for it', 'It is the wrong one']),
    ];
    return {
      intent: `Save a draft to the shop with the reason "${reason}" and the message "${message}".`,
      changes: { 'shop/contact/reason': reason, 'shop/contact/message': message },
      plan: [click('Contact Us'), choose('Reason', reason), fill('Message', message), press('Save Draft')],
    };
  },
  'practice-street'(_world, rng) {
    const street = `${1 + rng.int(90)} ${rng.pick(['Church', 'Station', 'Park'])} Road`;
    return {
      intent: `Change my address to the street "${street}".`,
      changes: { 'shop/address/street': street },
      plan: [click('My Account'), click('Address'), fill('Street', street), press('Save Address')],
    };
  },
  'practice-city'(_world, rng) {
    const [city, postcode] = [rng.pick(['Northbrook', 'Millport']), String(20_000 + rng.int(70_000))];
    return {
      intent: `Change my address to the city "${city}" and the postcode "${postcode}".`,
      changes: { 'shop/address/city': city, 'shop/address/postcode': postcode },
      plan: [
        click('My Account'),
        click('Address'),
        fill('City', city),
        fill('Postcode', postcode),
        press('Save Address'),
      ],
    };
  },
  'practice-review'(world, rng) {
    const { one, open } = product(world, rng);
    const text = rng.pick(['Arrived in time', 'Better than I thought', 'A fair price']);
    return {
      intent: `Review "${one.name}" with the text "${text}".`,
      changes: { [`shop/review/${one.slug}/1`]: `5 stars: ${text}` },
      plan: [
        ...open,
        click(`Reviews (${reviewsOf(world.shop, one).length})`),
        fill('Your review', text),
        press('Submit Review'),
      ],
    };
  },
});

const MONTHS = ['2022-10', '2022-12', '2023-02', '2023-04'];

function customer(world: Embedded, rng: Rng) {
  return world.shop.customers[1 + rng.int(world.shop.customers.length - 1)]!;
}

/** Back office's list, filtered by one thing. */
function createFiltered(intent: string, url: string, section: string, steps: Instance['plan']): Instance {
  return { intent, url, plan: [click(section), ...steps] };
}

const admin = templatesOf('shopping_admin', 'shopping_admin', {
  'practice-page': onePage([
    ['the orders', '/admin/orders', 'Orders'],
    ['the products', '/admin/products', 'Products'],
    ['the customers', '/admin/customers', 'Customers'],
    ['the reviews', '/admin/reviews', 'Reviews'],
    ['the bestsellers', '/admin/reports/bestsellers', 'Bestsellers'],
    ['the search terms', '/admin/reports/terms', 'Search Terms'],
  ]),
  'practice-status'(_world, rng) {
    const status = rng.pick(ORDER_STATUSES);
    const steps = [choose('Status', status), press('Filter')];
    return createFiltered(
      `Show me the orders with the status "${status}".`,
      `/admin/orders?status=${status}`,
      'Orders',
      steps,
    );
  },
  'practice-customer'(world, rng) {
    const { name } = customer(world, rng);
    const url = `/admin/orders?${new URLSearchParams({ customer: name })}`;
    const steps = [fill('Customer', name), press('Filter')];
    return createFiltered(`Show me the orders of the customer "${name}".`, url, 'Orders', steps);
  },
  'practice-month'(_world, rng) {
    const month = rng.pick(MONTHS);
    const steps = [fill('Month (YYYY-MM)', month), press('Filter')];
    return createFiltered(`Show me the orders of "${month}".`, `/admin/orders?month=${month}`, 'Orders', steps);
  },
  'practice-count'(world, rng) {
    const status = rng.pick(ORDER_STATUSES);
    return {
      intent: `How many orders have the status "${status}"?`,
      answer: { type: 'number', value: world.shop.orders.filter((one) => one.status === status).length },
      plan: [click('Orders'), choose('Status', status), press('Filter')],
    };
  },
  'practice-report'(_world, rng) {
    const [from, to] = [rng.pick(MONTHS.slice(0, 2)), rng.pick(MONTHS.slice(2))];
    const steps = [fill('From (YYYY-MM)', from), fill('To (YYYY-MM)', to), press('Show Report')];
    const url = `/admin/reports/bestsellers?from=${from}&to=${to}`;
    return createFiltered(`Show me the bestsellers from "${from}" to "${to}".`, url, 'Bestsellers', steps);
  },
  'practice-newest'(world, rng) {
    const { name, id } = customer(world, rng);
    const newest = world.shop.orders.find((one) => one.customer === id);
    return (
      newest && {
        intent: `Show me the newest order of "${name}".`,
        url: `/admin/order/${newest.number}`,
        plan: [click('Orders'), fill('Customer', name), press('Filter'), click(newest.number)],
      }
    );
  },
  'practice-product'(world, rng) {
    const { sku, name } = rng.pick(world.shop.products);
    return {
      intent: `Show me the product with the SKU "${sku}".`,
      url: `/admin/product/${sku}`,
      plan: [click('Products'), fill('Keyword', sku), press('Search'), click(name)],
    };
  },
  'practice-keyword'(world, rng) {
    const { sku } = rng.pick(world.shop.products);
    const steps = [fill('Keyword', sku), press('Search')];
    return createFiltered(`Search the products for "${sku}".`, `/admin/products?q=${sku}`, 'Products', steps);
  },
  'practice-pending'(_world, rng) {
    const status = rng.pick(['Pending', 'Approved']);
    const steps = [choose('Status', status), press('Filter')];
    return createFiltered(
      `Show me the reviews with the status "${status}".`,
      `/admin/reviews?status=${status}`,
      'Reviews',
      steps,
    );
  },
  'practice-author'(world, rng) {
    const { author } = rng.pick(world.shop.reviews);
    const url = `/admin/reviews?${new URLSearchParams({ q: author })}`;
    return createFiltered(`Show me the reviews by "${author}".`, url, 'Reviews', [
      fill('Keyword', author),
      press('Filter'),
    ]);
  },
  'practice-review'(world, rng) {
    const pending = world.shop.reviews.filter(({ status }) => status === 'Pending');
    const { author, id } = rng.pick(pending);
    if (pending.filter((one) => one.author === author).length !== 1) return undefined;
    return {
      intent: `Show me the pending review by "${author}".`,
      url: `/admin/review/${id}`,
      plan: [
        click('Reviews'),
        choose('Status', 'Pending'),
        fill('Keyword', author),
        press('Filter'),
        click(`Review ${id}`),
      ],
    };
  },
});

/** A place whose name is the only one of its kind. */
function place({ map }: Embedded, rng: Rng) {
  const one = rng.pick(map.places);
  return map.places.filter(({ name }) => name === one.name).length === 1 ? one : undefined;
}

const map = templatesOf('map', 'map', {
  'practice-page': onePage([['the directions', '/directions', 'Directions']]),
  'practice-place'(world, rng) {
    const one = place(world, rng);
    return (
      one && {
        intent: `Show me the place "${one.name}".`,
        url: `/place/${one.id}`,
        plan: [enter('Search places', one.name), click(one.name)],
      }
    );
  },
  'practice-route'(world, rng) {
    const [a, b] = [place(world, rng), place(world, rng)];
    if (!a || !b || a.id === b.id) return undefined;
    return {
      intent: `Show me the route from "${a.name}" to "${b.name}".`,
      url: `/directions?${new URLSearchParams({ from: a.name, to: b.name })}`,
      plan: [click('Directions'), fill('From', a.name), fill('To', b.name), press('Find route')],
    };
  },
  'practice-near'(world, rng) {
    const one = place(world, rng);
    const { kind } = rng.pick(PLACE_KINDS);
    return (
      one && {
        intent: `Show me each "${kind}" near "${one.name}".`,
        url: `/near/${one.id}?${new URLSearchParams({ kind })}`,
        plan: [enter('Search places', one.name), click(one.name), choose('Kind', kind), press('Show')],
      }
    );
  },
});

function project(world: Embedded, rng: Rng) {
  const one = rng.pick(world.code.projects);
  return { one, open: click(one.name) };
}

const PARTS = ['Issues', 'Merge requests', 'Commits', 'Contributors', 'Members', 'Milestones'];

const code = templatesOf('gitlab', 'gitlab', {
  'practice-project'(world, rng) {
    const { one, open } = project(world, rng);
    return { intent: `Show me the project "${one.name}".`, url: `/${one.path}`, plan: [open] };
  },
  'practice-part'(world, rng) {
    const { one, open } = project(world, rng);
    const part = rng.pick(PARTS);
    return {
      intent: `Show me the ${part.toLowerCase()} of the project "${one.name}".`,
      url: `/${one.path}/${part.toLowerCase().replace(' ', '_')}`,
      plan: [open, click(part)],
    };
  },
  'practice-label'(world, rng) {
    const { one, open } = project(world, rng);
    const label = rng.pick(LABELS);
    return {
      intent: `Show me the issues of the project "${one.name}" with the label "${label}".`,
      url: `/${one.path}/issues?${new URLSearchParams({ label })}`,
      plan: [open, click('Issues'), choose('Label', label), press('Filter')],
    };
  },
  'practice-commits'(world, rng) {
    const { one, open } = project(world, rng);
    const { author } = rng.pick(one.commits);
    return {
      intent: `Show me the commits of "${author}" to the project "${one.name}".`,
      url: `/${one.path}/commits?${new URLSearchParams({ author })}`,
      plan: [open, click('Commits'), fill('Author', author), press('Filter')],
    };
  },
  'practice-request'(world, rng) {
    const { one, open } = project(world, rng);
    const { title, iid } = rng.pick(one.mergeRequests);
    return {
      intent: `Show me the merge request "${title}" of the project "${one.name}".`,
      url: `/${one.path}/merge_requests/${iid}`,
      plan: [open, click('Merge requests'), click(title)],
    };
  },
  'practice-issue'(world, rng) {
    const { one, open } = project(world, rng);
    const title = `${rng.pick(COMPONENTS)} ${rng.pick(PROBLEMS)} after ${rng.pick(WHENS)}`;
    return {
      intent: `Create an issue in the project "${one.name}" with the title "${title}".`,
      changes: { [`code/issue/${one.path}/1`]: `${title} for nobody by ` },
      plan: [open, click('Issues'), click('New issue'), fill('Title', title), press('Create issue')],
    };
  },
  'practice-assigned'(world, rng) {
    const { one, open } = project(world, rng);
    const title = `${rng.pick(COMPONENTS)} ${rng.pick(PROBLEMS)} after ${rng.pick(WHENS)}`;
    const { user } = rng.pick(one.members);
    return {
      intent: `Create an issue in the project "${one.name}" with the title "${title}", assigned to "${user}".`,
      changes: { [`code/issue/${one.path}/1`]: `${title} for ${user} by ` },
      plan: [
        open,
        click('Issues'),
        click('New issue'),
        fill('Title', title),
        choose('Assignee', user),
        press('Create issue'),
      ],
    };
  },
  'practice-open-issue'(world, rng) {
    const { one, open } = project(world, rng);
    const shown = one.issues.filter(({ state }) => state === 'open').slice(0, 10);
    const { title, iid } = rng.pick(shown);
    if (shown.filter((issue) => issue.title === title).length > 1) return undefined;
    return {
      intent: `Show me the open issue "${title}" of the project "${one.name}".`,
      url: `/${one.path}/issues/${iid}`,
      plan: [open, click('Issues'), click(title)],
    };
  },
  'practice-milestone'(world, rng) {
    const { one, open } = project(world, rng);
    const title = `${rng.pick(COMPONENTS)} release`;
    return {
      intent: `Create a milestone in the project "${one.name}" with the title "${title}".`,
      changes: { [`code/milestone/${one.path}/1`]: `${title} from  to ` },
      plan: [open, click('Milestones'), fill('Title', title), press('Create milestone')],
    };
  },
  'practice-due'(world, rng) {
    const { one, open } = project(world, rng);
    const [title, due] = [`${rng.pick(COMPONENTS)} release`, `2023-08-${10 + rng.int(19)}`];
    return {
      intent: `Create a milestone in the project "${one.name}" with the title "${title}", due on "${due}".`,
      changes: { [`code/milestone/${one.path}/1`]: `${title} from  to ${due}` },
      plan: [open, click('Milestones'), fill('Title', title), fill('Due date', due), press('Create milestone')],
    };
  },
  'practice-member'(world, rng) {
    const { one, open } = project(world, rng);
    const user = rng.pick(world.code.users);
    if (one.members.some((member) => member.user === user)) return undefined;
    return {
      intent: `Invite "${user}" to the project "${one.name}".`,
      changes: { [`code/member/${one.path}/${user}`]: ROLES[0] },
      plan: [open, click('Members'), fill('User name', user), press('Invite')],
    };
  },
  'practice-star'(world, rng) {
    const { one, open } = project(world, rng);
    return {
      intent: `Star the project "${one.name}".`,
      changes: { [`code/star/${one.path}`]: 'yes' },
      plan: [open, press('Star')],
    };
  },
});

const forum = templatesOf('reddit', 'reddit', {
  'practice-page': onePage([
    ['the forums', '/forums', 'Forums'],
    ['my settings', '/settings', 'Settings'],
  ]),
  'practice-forum'(world, rng) {
    const name = rng.pick(world.forum.forums);
    return { intent: `Show me the forum "${name}".`, url: `/f/${name}`, plan: [click('Forums'), click(name)] };
  },
  'practice-sorted'(world, rng) {
    const [name, by] = [rng.pick(world.forum.forums), rng.pick(['New', 'Top'])];
    return {
      intent: `Show me the posts of the forum "${name}" sorted by "${by}".`,
      url: `/f/${name}?sort=${by}`,
      plan: [click('Forums'), click(name), choose('Sort by', by), press('Sort')],
    };
  },
  'practice-newest'(world, rng) {
    const name = rng.pick(world.forum.forums);
    const inside = world.forum.posts.filter((one) => one.forum === name);
    const { id, title } = sortPosts(inside, 'New')[0]!;
    return {
      intent: `Show me the newest post of the forum "${name}".`,
      url: `/f/${name}/${id}`,
      plan: [click('Forums'), click(name), choose('Sort by', 'New'), press('Sort'), click(title)],
    };
  },
  'practice-title'(world, rng) {
    const title = `Thoughts on ${rng.pick(world.forum.forums)}`;
    return {
      intent: `Create a post with the title "${title}".`,
      changes: { [`forum/post/${world.forum.forums[0]!}/1`]: `${title}: ` },
      plan: [click('Submit'), fill('Title', title), press('Create Post')],
    };
  },
  'practice-title-in'(world, rng) {
    const [name, title] = [rng.pick(world.forum.forums), `Thoughts on ${rng.pick(world.forum.forums)}`];
    return {
      intent: `Create a post in the forum "${name}" with the title "${title}".`,
      changes: { [`forum/post/${name}/1`]: `${title}: ` },
      plan: [click('Submit'), choose('Forum', name), fill('Title', title), press('Create Post')],
    };
  },
  'practice-post'(world, rng) {
    const { title, forum: where, id } = rng.pick(world.forum.posts);
    return {
      intent: `Show me the post "${title}".`,
      url: `/f/${where}/${id}`,
      plan: [enter('Search posts', title), click(title)],
    };
  },
  'practice-upvote'(world, rng) {
    const { title, id } = rng.pick(world.forum.posts);
    return {
      intent: `Upvote the post "${title}".`,
      changes: { [`forum/vote/${id}`]: '1' },
      plan: [enter('Search posts', title), click(title), press('Upvote')],
    };
  },
  'practice-author'(world, rng) {
    const { title, author } = rng.pick(world.forum.posts);
    return {
      intent: `Show me the author of the post "${title}".`,
      url: `/user/${author}`,
      plan: [enter('Search posts', title), click(author)],
    };
  },
});

export const practice: readonly Template[] = [...shopping, ...admin, ...map, ...code, ...forum];
