/** Tasks in the shop's back office. */
import type { Rng } from '../../../src/core/rng.ts';
import { bestsellers } from '../sites/admin.ts';
import { monthOf } from '../worlds/draw.ts';
import type { Embedded } from '../worlds/embedded.ts';
import { ORDER_STATUSES } from '../worlds/shop.ts';
import { COMPLAINTS, PRAISE } from '../worlds/words.ts';
import { choose, click, fill, press, templatesOf } from './template.ts';

const MONTHS = ['2022-09', '2022-10', '2022-11', '2022-12', '2023-01', '2023-02', '2023-03', '2023-04', '2023-05'];
const NOTES = ['Called the customer', 'Sent by courier', 'Waiting for stock', 'Packed as a gift', 'Address confirmed'];

function customer(world: Embedded, rng: Rng) {
  return world.shop.customers[1 + rng.int(world.shop.customers.length - 1)]!;
}

/** The newest order of a customer, and the steps to it. */
function newestOrder(world: Embedded, rng: Rng) {
  const who = customer(world, rng);
  const order = world.shop.orders.find((one) => one.customer === who.id);
  if (!order) return undefined;
  return { who, order, open: [click('Orders'), fill('Customer', who.name), press('Filter'), click(order.number)] };
}

/** A product, and the steps to where it is edited. */
function product(world: Embedded, rng: Rng) {
  const one = rng.pick(world.shop.products);
  return { one, open: [click('Products'), fill('Keyword', one.sku), press('Search'), click(one.name)] };
}

/** A review that is its author's only one of a status, and the steps to it. */
function reviewBy(world: Embedded, rng: Rng, status: 'Pending' | 'Approved') {
  const review = rng.pick(world.shop.reviews.filter((one) => one.status === status));
  const same = world.shop.reviews.filter(({ author, status: is }) => is === status && author === review.author);
  if (same.length !== 1) return undefined;
  return {
    review,
    open: [
      click('Reviews'),
      choose('Status', status),
      fill('Keyword', review.author),
      press('Filter'),
      click(`Review ${review.id}`),
    ],
  };
}

export const admin = templatesOf('shopping_admin', 'shopping_admin', {
  bestseller(world, rng) {
    const from = rng.int(MONTHS.length - 2);
    const [a, b] = [MONTHS[from]!, MONTHS[from + 1 + rng.int(2)]!];
    const [first, second] = bestsellers(world.shop, a, b);
    if (!first || first.sold === second?.sold) return undefined;
    return {
      intent: `What is the best-selling product from "${a}" to "${b}"?`,
      answer: { type: 'text', value: first.product.name },
      plan: [click('Bestsellers'), fill('From (YYYY-MM)', a), fill('To (YYYY-MM)', b), press('Show Report')],
    };
  },
  'orders-of-month'(world, rng) {
    const [status, month] = [rng.pick(ORDER_STATUSES), rng.pick(MONTHS)];
    const count = world.shop.orders.filter((one) => one.status === status && one.date.startsWith(month)).length;
    return {
      intent: `How many orders of "${month}" have the status "${status}"?`,
      answer: { type: 'number', value: count },
      plan: [click('Orders'), choose('Status', status), fill('Month (YYYY-MM)', month), press('Filter')],
    };
  },
  'reviews-with-word'(world, rng) {
    const word = rng.pick([...PRAISE, ...COMPLAINTS]);
    const count = world.shop.reviews.filter(({ text }) => text.includes(word)).length;
    return {
      intent: `How many reviews mention the word "${word}"?`,
      answer: { type: 'number', value: count },
      plan: [click('Reviews'), fill('Keyword', word), press('Filter')],
    };
  },
  'email-by-phone'(world, rng) {
    const { phone, email } = customer(world, rng);
    return {
      intent: `What is the email of the customer with the phone number "${phone}"?`,
      answer: { type: 'text', value: email },
      plan: [click('Customers'), fill('Keyword', phone), press('Search')],
    };
  },
  'order-status'(world, rng) {
    const at = newestOrder(world, rng);
    if (!at) return undefined;
    const to = rng.pick(ORDER_STATUSES);
    if (to === at.order.status) return undefined;
    return {
      intent: `Change the status of the newest order of "${at.who.name}" to "${to}".`,
      changes: { [`admin/order/${at.order.number}/status`]: to },
      plan: [...at.open, choose('Status', to), press('Save Status')],
    };
  },
  'set-stock'(world, rng) {
    const { one, open } = product(world, rng);
    const stock = String(130 + rng.int(200));
    return {
      intent: `Set the stock of the product with the SKU "${one.sku}" to "${stock}".`,
      changes: { [`admin/product/${one.sku}/stock`]: stock },
      plan: [...open, fill('Stock', stock), press('Save')],
    };
  },
  'set-price'(world, rng) {
    const { one, open } = product(world, rng);
    const price = 300 + rng.int(150);
    return {
      intent: `Set the price of the product with the SKU "${one.sku}" to "${price}.00".`,
      changes: { [`admin/product/${one.sku}/price`]: String(price * 100) },
      plan: [...open, fill('Price', `${price}.00`), press('Save')],
    };
  },
  'price-by-percent'(world, rng) {
    const { one, open } = product(world, rng);
    const percent = 10 * (1 + rng.int(4));
    const price = Math.round((one.price * (100 + percent)) / 100);
    return {
      intent: `Raise the price of the product with the SKU "${one.sku}" by ${percent} percent.`,
      changes: { [`admin/product/${one.sku}/price`]: String(price) },
      plan: [...open, fill('Price', (price / 100).toFixed(2)), press('Save')],
    };
  },
  'approve-review'(world, rng) {
    const at = reviewBy(world, rng, 'Pending');
    return (
      at && {
        intent: `Approve the pending review by "${at.review.author}".`,
        changes: { [`admin/review/${at.review.id}`]: 'Approved' },
        plan: [...at.open, press('Approve')],
      }
    );
  },
  'delete-review'(world, rng) {
    const at = reviewBy(world, rng, 'Pending');
    return (
      at && {
        intent: `Delete the pending review by "${at.review.author}".`,
        changes: { [`admin/review/${at.review.id}`]: 'Deleted' },
        plan: [...at.open, press('Delete')],
      }
    );
  },
  'comment-on-order'(world, rng) {
    const at = newestOrder(world, rng);
    const note = rng.pick(NOTES);
    return (
      at && {
        intent: `Comment "${note}" on the newest order of "${at.who.name}".`,
        changes: { [`admin/order/${at.order.number}/comment/1`]: note },
        plan: [...at.open, fill('Comment', note), press('Submit Comment')],
      }
    );
  },
  'term-uses'(world, rng) {
    const { term, uses } = rng.pick(world.shop.terms);
    return {
      intent: `How often was the search term "${term}" used?`,
      answer: { type: 'number', value: uses },
      plan: [click('Search Terms')],
    };
  },
  'show-orders'(_world, rng) {
    const [status, month] = [rng.pick(ORDER_STATUSES), rng.pick(MONTHS)];
    return {
      intent: `Show me the orders of "${month}" with the status "${status}".`,
      url: `/admin/orders?status=${status}&month=${month}`,
      plan: [click('Orders'), choose('Status', status), fill('Month (YYYY-MM)', month), press('Filter')],
    };
  },
  birthday(world, rng) {
    const { name } = customer(world, rng);
    return {
      intent: `What is the birthday of the customer "${name}"?`,
      answer: { type: 'none' },
      url: `/admin/customers?${new URLSearchParams({ q: name })}`,
      plan: [click('Customers'), fill('Keyword', name), press('Search')],
    };
  },
  'most-canceled'(world, rng) {
    const month = rng.pick(MONTHS);
    const inside = world.shop.orders.filter(({ status, date }) => status === 'Canceled' && date.startsWith(month));
    const counts = new Map<number, number>();
    for (const { customer: id } of inside) counts.set(id, (counts.get(id) ?? 0) + 1);
    const [first, second] = [...counts].sort((a, b) => b[1] - a[1]);
    if (!first || first[1] === second?.[1] || inside.length > 20) return undefined;
    return {
      intent: `Which customer has the most canceled orders in "${monthOf(`${month}-01`)}" (${month})?`,
      answer: { type: 'text', value: world.shop.customers[first[0]]!.name },
      plan: [click('Orders'), choose('Status', 'Canceled'), fill('Month (YYYY-MM)', month), press('Filter')],
    };
  },
  'order-total*'(world, rng) {
    const at = newestOrder(world, rng);
    return (
      at && {
        intent: `What is the total of the newest order of "${at.who.name}"?`,
        answer: { type: 'money', value: at.order.total },
        plan: at.open,
      }
    );
  },
  'price-and-stock*'(world, rng) {
    const { one, open } = product(world, rng);
    const [price, stock] = [300 + rng.int(150), String(130 + rng.int(200))];
    return {
      intent: `Set the price of the product with the SKU "${one.sku}" to "${price}.00" and its stock to "${stock}".`,
      changes: { [`admin/product/${one.sku}/price`]: String(price * 100), [`admin/product/${one.sku}/stock`]: stock },
      plan: [...open, fill('Price', `${price}.00`), fill('Stock', stock), press('Save')],
    };
  },
});
