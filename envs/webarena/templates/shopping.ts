/** Tasks in the shop. */
import type { Rng } from '../../../src/core/rng.ts';
import { ownOrders, ratingOf, reviewsOf, sortProducts } from '../sites/shop.ts';
import { monthOf, slug } from '../worlds/draw.ts';
import type { Embedded } from '../worlds/embedded.ts';
import { ORDER_STATUSES } from '../worlds/shop.ts';
import { CATEGORIES } from '../worlds/words.ts';
import { choose, click, enter, fill, pages, press, templatesOf } from './template.ts';

/** A product that a search for its name finds first, and the steps to its page. */
function drawFound(world: Embedded, rng: Rng) {
  const product = rng.pick(world.shop.products);
  return { product, open: [enter('Search', product.name), click(product.name)] };
}

/** A category, its products in an order, and the steps to them. */
function drawSorted(world: Embedded, rng: Rng, by: string) {
  const { name } = rng.pick(CATEGORIES);
  const products = sortProducts(
    world.shop,
    world.shop.products.filter(({ category }) => category === name),
    by,
  );
  return { name, products, open: [click(name), choose('Sort by', by), press('Apply')] };
}

/** An order of the signed-in customer among the newest twenty. */
function order(world: Embedded, rng: Rng) {
  const orders = ownOrders(world.shop).slice(0, 20);
  const at = rng.int(orders.length);
  const one = orders[at]!;
  return { one, orders, open: [click('My Account'), click('My Orders'), ...pages(at), click(one.number)] };
}

const MESSAGES = [
  'Please call me back',
  'The box was open',
  'I want to return it',
  'One part is missing',
  'It came too late',
];
const OPINIONS = ['Does what it should', 'I would buy it again', 'Not worth the money', 'My family likes it'];

export const shopping = templatesOf('shopping', 'shopping', {
  price(world, rng) {
    const { product, open } = drawFound(world, rng);
    return {
      intent: `What is the price of "${product.name}"?`,
      answer: { type: 'money', value: product.price },
      plan: open,
    };
  },
  'review-count'(world, rng) {
    const { product, open } = drawFound(world, rng);
    return {
      intent: `How many reviews has "${product.name}" got?`,
      answer: { type: 'number', value: reviewsOf(world.shop, product).length },
      plan: open,
    };
  },
  'last-order'(world, rng) {
    const status = rng.pick(ORDER_STATUSES);
    const orders = ownOrders(world.shop);
    const at = orders.findIndex((one) => one.status === status);
    if (at < 0) return undefined;
    const asks = rng.int(2) === 0;
    const { number, date } = orders[at]!;
    return {
      intent: asks
        ? `What is the number of my last order with the status "${status}"?`
        : `What is the date of my last order with the status "${status}"?`,
      answer: asks ? { type: 'text', value: number } : { type: 'date', value: date },
      plan: [click('My Account'), click('My Orders'), ...pages(at)],
    };
  },
  'spent-in-month'(world, rng) {
    const orders = ownOrders(world.shop);
    const month = rng.pick(orders.slice(0, 18)).date.slice(0, 7);
    const all = orders.filter(({ date, status }) => date.startsWith(month) && status === 'Complete');
    if (all.length === 0) return undefined;
    const last = orders.findLastIndex(({ date }) => date.startsWith(month));
    return {
      intent: `How much did I spend on complete orders in "${monthOf(`${month}-01`)}"?`,
      answer: { type: 'money', value: all.reduce((sum, { total }) => sum + total, 0) },
      plan: [click('My Account'), click('My Orders'), ...pages(last)],
    };
  },
  'option-ordered'(world, rng) {
    const { one, open } = order(world, rng);
    const item = rng.pick(one.items);
    if (one.items.filter(({ product }) => product === item.product).length > 1) return undefined;
    const { name } = world.shop.products[item.product]!;
    return {
      intent: `Which option of "${name}" did I order in order "${one.number}"?`,
      answer: { type: 'text', value: item.option },
      plan: open,
    };
  },
  'cheapest-rated'(world, rng) {
    const { name, products, open } = drawSorted(world, rng, 'Price ascending');
    const rating = 2 + rng.int(3);
    const cheapest = products.slice(0, 10).find((product) => Number(ratingOf(world.shop, product)) > rating);
    return (
      cheapest && {
        intent: `What is the cheapest product in the category "${name}" with a rating above ${rating}?`,
        answer: { type: 'text', value: cheapest.name },
        plan: open,
      }
    );
  },
  'show-sorted'(world, rng) {
    const by = rng.pick(['Price ascending', 'Price descending', 'Rating', 'Name']);
    const { name, open } = drawSorted(world, rng, by);
    return {
      intent: `Show me the category "${name}" sorted by "${by}".`,
      url: `/category/${slug(name)}?sort=${by.replace(' ', '+')}`,
      plan: open,
    };
  },
  search(world, rng) {
    const { things } = rng.pick(CATEGORIES);
    const thing = rng.pick(things);
    const first = world.shop.products.filter(({ name }) => name.includes(thing))[0];
    if (!first) return undefined;
    return {
      intent: `Search for "${thing}" and open the first result.`,
      url: `/product/${first.slug}`,
      plan: [enter('Search', thing), click(first.name)],
    };
  },
  wishlist(world, rng) {
    const { product, open } = drawFound(world, rng);
    return {
      intent: `Add "${product.name}" to my wish list.`,
      changes: { [`shop/wishlist/${product.slug}`]: 'yes' },
      plan: [...open, press('Add to Wish List')],
    };
  },
  buy(world, rng) {
    const { product, open } = drawFound(world, rng);
    const { slug: at, name, options } = product;
    const [option, quantity] = [rng.pick(options), 1 + rng.int(4)];
    const shipping = rng.pick(['Express', 'Pick up']);
    return {
      intent: `Order ${quantity} of "${name}" with the option "${option}" and the shipping "${shipping}".`,
      changes: { 'shop/order/1': `${at}|${option}|${quantity} by ${shipping}` },
      plan: [
        ...open,
        choose('Option', option),
        fill('Quantity', String(quantity)),
        press('Add to Cart'),
        click('My Cart'),
        click('Proceed to Checkout'),
        choose('Shipping', shipping),
        press('Place Order'),
      ],
    };
  },
  'contact-draft'(world, rng) {
    const { number } = rng.pick(ownOrders(world.shop));
    const [reason, message] = [rng.pick(['Refund', 'Damage', 'Delivery']), rng.pick(MESSAGES)];
    return {
      intent: `Save a draft to the shop about order "${number}" with the reason "${reason}" and the message "${message}".`,
      changes: { 'shop/contact/order': number, 'shop/contact/reason': reason, 'shop/contact/message': message },
      plan: [
        click('Contact Us'),
        fill('Order number', number),
        choose('Reason', reason),
        fill('Message', message),
        press('Save Draft'),
      ],
    };
  },
  address(_world, rng) {
    const street = `${1 + rng.int(90)} ${rng.pick(['Mill', 'Garden', 'Castle'])} Street`;
    const [city, postcode] = [rng.pick(['Ashford', 'Larkhill', 'Eastvale']), String(20_000 + rng.int(70_000))];
    return {
      intent: `Change my address to the street "${street}", the city "${city}" and the postcode "${postcode}".`,
      changes: { 'shop/address/street': street, 'shop/address/city': city, 'shop/address/postcode': postcode },
      plan: [
        click('My Account'),
        click('Address'),
        fill('Street', street),
        fill('City', city),
        fill('Postcode', postcode),
        press('Save Address'),
      ],
    };
  },
  review(world, rng) {
    const { product, open } = drawFound(world, rng);
    const [stars, text] = [String(1 + rng.int(4)), rng.pick(OPINIONS)];
    return {
      intent: `Review "${product.name}" with ${stars} stars and the text "${text}".`,
      changes: { [`shop/review/${product.slug}/1`]: `${stars} stars: ${text}` },
      plan: [
        ...open,
        click(`Reviews (${reviewsOf(world.shop, product).length})`),
        choose('Stars', stars),
        fill('Your review', text),
        press('Submit Review'),
      ],
    };
  },
  warranty(world, rng) {
    const { product, open } = drawFound(world, rng);
    return {
      intent: `How long is the warranty of "${product.name}"?`,
      answer: { type: 'none' },
      url: `/product/${product.slug}`,
      plan: open,
    };
  },
  'order-total*'(world, rng) {
    const { one, open } = order(world, rng);
    return {
      intent: `What is the total of my order "${one.number}"?`,
      answer: { type: 'money', value: one.total },
      plan: open,
    };
  },
  'dearest-sku*'(world, rng) {
    const { name, products, open } = drawSorted(world, rng, 'Price descending');
    const first = products[0]!;
    return {
      intent: `What is the SKU of the most expensive product in the category "${name}"?`,
      answer: { type: 'text', value: first.sku },
      plan: [...open, click(first.name)],
    };
  },
  'newsletter-address*'(_world, rng) {
    const city = rng.pick(['Ashford', 'Larkhill', 'Eastvale']);
    return {
      intent: `Subscribe me to the newsletter and change the city of my address to "${city}".`,
      changes: { 'shop/newsletter': 'on', 'shop/address/city': city },
      plan: [
        click('My Account'),
        click('Newsletter'),
        click('General subscription', 'checkbox'),
        press('Save'),
        click('My Account'),
        click('Address'),
        fill('City', city),
        press('Save Address'),
      ],
    };
  },
});
