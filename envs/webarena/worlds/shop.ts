/** Products, reviews, customers and orders: what shop and shop admin show. */
import type { Rng } from '../../../src/core/rng.ts';
import { daysAgo, distinct, drawSome, slug } from './draw.ts';
import {
  ADJECTIVES,
  CATEGORIES,
  COLOURS,
  COMPLAINTS,
  FIRST_NAMES,
  LAST_NAMES,
  MATERIALS,
  PRAISE,
  SEARCH_TERMS,
} from './words.ts';

/** Product of the shop. */
export interface Product {
  readonly id: number;
  readonly name: string;
  readonly slug: string;
  readonly category: string;
  /** Cents. */
  readonly price: number;
  readonly options: readonly string[];
  readonly stock: number;
  readonly sku: string;
}

/** Review of a product. */
export interface Review {
  readonly id: number;
  readonly product: number;
  readonly author: string;
  readonly stars: number;
  readonly text: string;
  readonly status: 'Approved' | 'Pending';
  readonly date: string;
}

/** Customer of the shop. */
export interface Customer {
  readonly id: number;
  readonly name: string;
  readonly email: string;
  readonly phone: string;
}

/** Statuses of an order. */
export const ORDER_STATUSES = ['Complete', 'Processing', 'Pending', 'Canceled'] as const;

/** Order of a customer. */
export interface Order {
  readonly id: number;
  /** Nine digits, e.g. `000000170`. */
  readonly number: string;
  readonly customer: number;
  readonly date: string;
  readonly status: (typeof ORDER_STATUSES)[number];
  readonly items: readonly { readonly product: number; readonly option: string; readonly quantity: number }[];
  /** Cents. */
  readonly total: number;
}

/** World of the shop and its back office. */
export interface ShopWorld {
  readonly products: readonly Product[];
  readonly reviews: readonly Review[];
  readonly customers: readonly Customer[];
  /** Newest first. */
  readonly orders: readonly Order[];
  readonly terms: readonly { readonly term: string; readonly uses: number }[];
}

/** Customer 0 is the one who is signed in to the shop. */
export const SIGNED_IN = 0;
const CUSTOMERS = 60;
const OWN_ORDERS = 37;
const ORDERS = 300;
const REVIEWS = 600;

/** Draws the world of the shop. */
export function drawShop(rng: Rng): ShopWorld {
  const products = drawProducts(rng.split('products'));
  const customers = drawCustomers(rng.split('customers'));
  return {
    products,
    reviews: drawReviews(rng.split('reviews'), products, customers),
    customers,
    orders: drawOrders(rng.split('orders'), products),
    terms: rng.shuffle(SEARCH_TERMS).map((term, i) => ({ term, uses: 120 - 7 * i - rng.int(6) })),
  };
}

function drawProducts(rng: Rng): Product[] {
  const name = new Map(
    CATEGORIES.map(({ name, things }) => [
      name,
      distinct(() => `${rng.pick(ADJECTIVES)} ${rng.pick(MATERIALS)} ${rng.pick(things)}`),
    ]),
  );
  const price = distinct(() => String(499 + rng.int(24_000)));
  return Array.from({ length: 240 }, (_, id) => {
    const category = CATEGORIES[id % CATEGORIES.length]!.name;
    const made = name.get(category)!();
    const options = drawSome(rng, COLOURS, 2 + rng.int(3));
    const sku = `${category.slice(0, 2).toUpperCase()}${100 + id}`;
    return { id, name: made, slug: slug(made), category, price: Number(price()), options, stock: rng.int(120), sku };
  });
}

function drawCustomers(rng: Rng): Customer[] {
  const name = distinct(() => `${rng.pick(FIRST_NAMES)} ${rng.pick(LAST_NAMES)}`);
  const phone = distinct(() => `555${String(rng.int(10_000_000)).padStart(7, '0')}`);
  return Array.from({ length: CUSTOMERS }, (_, id) => {
    const made = name();
    return { id, name: made, email: `${made.toLowerCase().replace(' ', '.')}@mail.test`, phone: phone() };
  });
}

function drawReviews(rng: Rng, products: readonly Product[], customers: readonly Customer[]): Review[] {
  return Array.from({ length: REVIEWS }, (_, id) => {
    const stars = 1 + rng.int(5);
    const words = stars >= 3 ? PRAISE : COMPLAINTS;
    const text = `It is ${rng.pick(words)} and ${rng.pick(words)}.`;
    const status = rng.int(6) === 0 ? 'Pending' : 'Approved';
    const { name } = customers[1 + rng.int(customers.length - 1)]!;
    return { id, product: rng.int(products.length), author: name, stars, text, status, date: daysAgo(rng.int(400)) };
  });
}

function drawOrders(rng: Rng, products: readonly Product[]): Order[] {
  const days = Array.from({ length: ORDERS }, () => 1 + rng.int(360)).sort((a, b) => b - a);
  const own = new Set(rng.shuffle(days.map((_, i) => i)).slice(0, OWN_ORDERS));
  const orders = days.map((day, id): Order => {
    const items = Array.from({ length: 1 + rng.int(3) }, () => {
      const { id: product, options } = rng.pick(products);
      return { product, option: rng.pick(options), quantity: 1 + rng.int(2) };
    });
    const total = items.reduce((sum, { product, quantity }) => sum + products[product]!.price * quantity, 0);
    const customer = own.has(id) ? SIGNED_IN : 1 + rng.int(CUSTOMERS - 1);
    const status = rng.pick(ORDER_STATUSES);
    return { id, number: String(1000 + id).padStart(9, '0'), customer, date: daysAgo(day), status, items, total };
  });
  return orders.reverse();
}
