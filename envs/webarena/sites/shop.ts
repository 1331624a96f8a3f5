/** Shop site: categories, search, products, cart and checkout, the signed-in customer's account. */
import {
  type Block,
  button,
  type CellLike,
  checkbox,
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
import { money, slug } from '../worlds/draw.ts';
import { type Order, type Product, type Review, type ShopWorld, SIGNED_IN } from '../worlds/shop.ts';
import { CATEGORIES } from '../worlds/words.ts';
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
} from './site.ts';

const NAME = 'Harbour Store';
const SORTS = ['Position', 'Price ascending', 'Price descending', 'Name', 'Rating'] as const;

export const shop: Site = {
  get: (world, ...request) => get(world.shop, ...request),
  post: (world, ...request) => post(world.shop, ...request),
};

function get(shop: ShopWorld, changes: Changes, path: string, query: URLSearchParams): Page {
  const [, section = '', item = '', part = ''] = path.split('/');
  if (section === '') return home();
  if (section === 'category') return category(shop, item, query);
  if (section === 'search') return results(shop, query);
  if (section === 'product') {
    const product = shop.products.find((one) => one.slug === item);
    if (product)
      return part === 'reviews' ? reviewsPage(shop, changes, product, query) : productPage(shop, product, query);
  }
  if (section === 'cart') return cart(shop, changes);
  if (section === 'checkout') return checkout(shop, changes);
  if (section === 'contact') return contact(changes, query);
  if (section === 'account') return account(shop, changes, item, part, query);
  return renderNotFound();
}

function shell(title: string, ...blocks: readonly Block[]): Page {
  return page(
    `${title} - ${NAME}`,
    row(
      link(NAME, '/'),
      link('My Account', '/account'),
      link('My Wish List', '/account/wishlist'),
      link('My Cart', '/cart'),
      link('Contact Us', '/contact'),
    ),
    form('get', '/search', {}, row(searchbox('Search', 'q'), button('Find'))),
    nav('Categories', ...CATEGORIES.map(({ name }) => link(name, `/category/${slug(name)}`))),
    main(title, ...blocks),
  );
}

function home(): Page {
  return shell('Welcome', row('Choose a category or search for a product.'), row('You are signed in.'));
}

/** Approved reviews of a product. */
export function reviewsOf({ reviews }: ShopWorld, { id }: Product): Review[] {
  return reviews.filter(({ product, status: is }) => product === id && is === 'Approved');
}

/** `4.5`, or `none` without reviews. */
export function ratingOf(shop: ShopWorld, product: Product): string {
  const reviews = reviewsOf(shop, product);
  return reviews.length === 0
    ? 'none'
    : (reviews.reduce((sum, { stars }) => sum + stars, 0) / reviews.length).toFixed(1);
}

function rows(shop: ShopWorld, products: readonly Product[]): CellLike[][] {
  return products.map((product) => [
    link(product.name, `/product/${product.slug}`),
    money(product.price),
    ratingOf(shop, product),
  ]);
}

/** Sorts products as an address asks for: by price, name or rating. */
export function sortProducts(shop: ShopWorld, products: readonly Product[], by: string | null): Product[] {
  const rating = (product: Product) => Number(ratingOf(shop, product)) || 0;
  const orders: Readonly<Record<string, (a: Product, b: Product) => number>> = {
    'Price ascending': (a, b) => a.price - b.price,
    'Price descending': (a, b) => b.price - a.price,
    Name: (a, b) => (a.name < b.name ? -1 : 1),
    Rating: (a, b) => rating(b) - rating(a) || a.id - b.id,
  };
  const order = orders[by ?? ''];
  return order ? [...products].sort(order) : [...products];
}

function category(shop: ShopWorld, wanted: string, query: URLSearchParams): Page {
  const found = CATEGORIES.find(({ name }) => slug(name) === wanted);
  if (!found) return renderNotFound();
  const inside = shop.products.filter((product) => product.category === found.name);
  const most = Number(query.get('max') ?? '') || Number.POSITIVE_INFINITY;
  const reviewed = query.has('reviewed');
  const products = sortProducts(
    shop,
    inside.filter((product) => product.price <= most * 100 && (!reviewed || reviewsOf(shop, product).length > 0)),
    query.get('sort'),
  );
  const shown = takePage(products, query.get('page'));
  const path = `/category/${wanted}`;
  return shell(
    found.name,
    form(
      'get',
      path,
      {},
      row(
        'Sort by',
        select('Sort by', 'sort', SORTS, query.get('sort') ?? ''),
        'Highest price',
        textbox('Highest price', 'max', query.get('max') ?? ''),
        checkbox('With reviews', 'reviewed', reviewed),
        button('Apply'),
      ),
    ),
    table('Products', ['Product', 'Price', 'Rating'], rows(shop, shown.items)),
    pager(shown, path, query),
  );
}

function results(shop: ShopWorld, query: URLSearchParams): Page {
  const wanted = oneLine(query.get('q'));
  const words = searchWords(query);
  const found = shop.products.filter(({ name, sku }) => hasWords(`${name} ${sku}`, words));
  const shown = takePage(found, query.get('page'));
  return shell(
    `Results for ${wanted === '' ? 'nothing' : wanted}`,
    table('Products', ['Product', 'Price', 'Rating'], rows(shop, shown.items)),
    pager(shown, '/search', query),
  );
}

function productPage(shop: ShopWorld, product: Product, query: URLSearchParams): Page {
  const reviews = reviewsOf(shop, product);
  return shell(
    product.name,
    ...notice(query, 'added', `Added to your ${query.get('added') === 'cart' ? 'cart' : 'wish list'}.`),
    row('Price', money(product.price)),
    row('SKU', product.sku),
    row('Rating', ratingOf(shop, product)),
    row('Category', link(product.category, `/category/${slug(product.category)}`)),
    row(link(`Reviews (${reviews.length})`, `/product/${product.slug}/reviews`)),
    form(
      'post',
      '/cart/add',
      { product: product.slug },
      row('Option', select('Option', 'option', product.options, '')),
      row('Quantity', textbox('Quantity', 'quantity', '1')),
      row(button('Add to Cart')),
    ),
    form('post', '/account/wishlist/add', { product: product.slug }, row(button('Add to Wish List'))),
  );
}

function reviewsPage(shop: ShopWorld, changes: Changes, product: Product, query: URLSearchParams): Page {
  const reviews = reviewsOf(shop, product);
  const shown = takePage(reviews, query.get('page'));
  const path = `/product/${product.slug}/reviews`;
  const mine = listMade(changes, `shop/review/${product.slug}`);
  return shell(
    `Reviews of ${product.name}`,
    row(link('Back to product', `/product/${product.slug}`)),
    table(
      'Reviews',
      ['Author', 'Stars', 'Review'],
      shown.items.map(({ author, stars, text }) => [author, stars, text]),
    ),
    pager(shown, path, query),
    ...mine.map((text) => row(`Waiting for approval: ${text}`)),
    row(heading('Write a review', 2)),
    form(
      'post',
      path,
      {},
      row('Stars', select('Stars', 'stars', ['5', '4', '3', '2', '1'], '')),
      ...fields(textbox('Your review', 'text')),
      row(button('Submit Review')),
    ),
  );
}

/** Lines of the cart: `product-slug|option|quantity`. */
function cartLines(changes: Changes): string[][] {
  return Object.entries(changes)
    .filter(([key]) => key.startsWith('shop/cart/'))
    .map(([key, quantity]) => [...key.slice('shop/cart/'.length).split('|'), quantity]);
}

function priceLines(
  shop: ShopWorld,
  lines: readonly string[][],
): { product: Product; option: string; quantity: number }[] {
  return lines.flatMap(([wanted, option = '', quantity]) => {
    const product = shop.products.find((one) => one.slug === wanted);
    return product ? [{ product, option, quantity: Number(quantity) }] : [];
  });
}

function cart(shop: ShopWorld, changes: Changes): Page {
  const lines = priceLines(shop, cartLines(changes));
  const total = lines.reduce((sum, { product, quantity }) => sum + product.price * quantity, 0);
  if (lines.length === 0) return shell('Shopping Cart', row('Your cart is empty.'));
  return shell(
    'Shopping Cart',
    table(
      'Cart',
      ['Product', 'Option', 'Quantity', 'Price'],
      lines.map(({ product, option, quantity }) => [
        link(product.name, `/product/${product.slug}`),
        option,
        quantity,
        money(product.price),
      ]),
    ),
    row('Total', money(total)),
    form('post', '/cart/clear', {}, row(button('Empty Cart'))),
    row(link('Proceed to Checkout', '/checkout')),
  );
}

function checkout(shop: ShopWorld, changes: Changes): Page {
  const lines = priceLines(shop, cartLines(changes));
  if (lines.length === 0) return shell('Checkout', row('There is nothing to order.'));
  return shell(
    'Checkout',
    row(`${lines.length} products`),
    form(
      'post',
      '/checkout',
      {},
      ...fields(select('Shipping', 'shipping', ['Standard', 'Express', 'Pick up'], '')),
      row(button('Place Order')),
    ),
  );
}

function contact(changes: Changes, query: URLSearchParams): Page {
  return shell(
    'Contact Us',
    ...notice(query, 'saved', 'Your draft was saved.'),
    form(
      'post',
      '/contact',
      {},
      ...fields(
        textbox('Order number', 'order', changes['shop/contact/order'] ?? ''),
        select('Reason', 'reason', ['Question', 'Refund', 'Damage', 'Delivery'], changes['shop/contact/reason'] ?? ''),
        textbox('Message', 'message', changes['shop/contact/message'] ?? ''),
      ),
      row(button('Save Draft')),
    ),
  );
}

/** The signed-in customer's orders, newest first. */
export function ownOrders({ orders }: ShopWorld): Order[] {
  return orders.filter(({ customer }) => customer === SIGNED_IN);
}

const ACCOUNT = [
  link('My Orders', '/account/orders'),
  link('My Wish List', '/account/wishlist'),
  link('Address', '/account/address'),
  link('Newsletter', '/account/newsletter'),
];

function account(shop: ShopWorld, changes: Changes, section: string, item: string, query: URLSearchParams): Page {
  const me = shop.customers[SIGNED_IN]!;
  if (section === '')
    return shell('My Account', nav('Account', ...ACCOUNT), row('Name', me.name), row('Email', me.email));
  if (section === 'orders') {
    const shown = takePage(ownOrders(shop), query.get('page'));
    const lines = shown.items.map(({ number, date, status: is, total }) => [
      link(number, `/account/order/${number}`),
      date,
      is,
      money(total),
    ]);
    return shell(
      'My Orders',
      nav('Account', ...ACCOUNT),
      table('Orders', ['Order', 'Date', 'Status', 'Total'], lines),
      pager(shown, '/account/orders', query),
    );
  }
  if (section === 'order') {
    const order = ownOrders(shop).find(({ number }) => number === item);
    return order ? orderPage(shop, order) : renderNotFound();
  }
  if (section === 'wishlist') return wishlist(shop, changes);
  if (section === 'address') return address(changes, query);
  if (section === 'newsletter') {
    const on = changes['shop/newsletter'] === 'on';
    return shell(
      'Newsletter',
      form('post', '/account/newsletter', {}, row(checkbox('General subscription', 'on', on)), row(button('Save'))),
      row(on ? 'You are subscribed.' : 'You are not subscribed.'),
    );
  }
  return renderNotFound();
}

function orderPage(shop: ShopWorld, order: Order): Page {
  const lines = order.items.map(({ product, option, quantity }) => {
    const { name, slug: at, price } = shop.products[product]!;
    return [link(name, `/product/${at}`), option, quantity, money(price)];
  });
  return shell(
    `Order ${order.number}`,
    row('Date', order.date),
    row('Status', order.status),
    row('Total', money(order.total)),
    table('Items', ['Product', 'Option', 'Quantity', 'Price'], lines),
  );
}

function wishlist(shop: ShopWorld, changes: Changes): Page {
  const wished = shop.products.filter((product) => `shop/wishlist/${product.slug}` in changes);
  return shell(
    'My Wish List',
    list(
      'Wish list',
      wished.map((product) => [link(product.name, `/product/${product.slug}`), money(product.price)]),
    ),
    row(wished.length === 0 ? 'Your wish list is empty.' : `${wished.length} products`),
  );
}

const ADDRESS = ['street', 'city', 'postcode'] as const;
const ORIGINAL_ADDRESS: Readonly<Record<string, string>> = {
  street: '12 Quay Street',
  city: 'Northport',
  postcode: '10117',
};

function address(changes: Changes, query: URLSearchParams): Page {
  const labelled = ADDRESS.map((field) =>
    textbox(
      field[0]!.toUpperCase() + field.slice(1),
      field,
      changes[`shop/address/${field}`] ?? ORIGINAL_ADDRESS[field],
    ),
  );
  return shell(
    'Address',
    ...notice(query, 'saved', 'Your address was saved.'),
    form('post', '/account/address', {}, ...fields(...labelled), row(button('Save Address'))),
  );
}

function post(shop: ShopWorld, changes: Changes, path: string, sent: URLSearchParams): Posted | undefined {
  const product = shop.products.find((one) => one.slug === sent.get('product'));
  if (path === '/cart/add' && product) {
    const option = product.options.includes(sent.get('option') ?? '') ? sent.get('option')! : product.options[0]!;
    const wanted = Number(sent.get('quantity'));
    if (!Number.isInteger(wanted) || wanted < 1 || wanted > 99)
      return { redirect: `/product/${product.slug}`, changes };
    const key = `shop/cart/${product.slug}|${option}`;
    const quantity = Math.min(99, wanted + Number(changes[key] ?? 0));
    return { redirect: `/product/${product.slug}?added=cart`, changes: setChange(changes, key, String(quantity)) };
  }
  if (path === '/account/wishlist/add' && product) {
    return {
      redirect: `/product/${product.slug}?added=wishlist`,
      changes: setChange(changes, `shop/wishlist/${product.slug}`, 'yes'),
    };
  }
  if (path === '/cart/clear') return { redirect: '/cart', changes: clearCart(changes) };
  if (path === '/checkout' && cartLines(changes).length > 0) {
    const lines = cartLines(changes)
      .map((line) => line.join('|'))
      .sort();
    const order = `${lines.join(' ')} by ${oneLine(sent.get('shipping'))}`;
    return { redirect: '/account', changes: appendChange(clearCart(changes), 'shop/order', order) };
  }
  if (path === '/contact') {
    const next = ['order', 'reason', 'message'].reduce(
      (all, field) => setChange(all, `shop/contact/${field}`, oneLine(sent.get(field))),
      changes,
    );
    return { redirect: '/contact?saved=1', changes: next };
  }
  if (path === '/account/address') {
    const next = ADDRESS.reduce(
      (all, field) => setChange(all, `shop/address/${field}`, oneLine(sent.get(field)), ORIGINAL_ADDRESS[field]),
      changes,
    );
    return { redirect: '/account/address?saved=1', changes: next };
  }
  if (path === '/account/newsletter')
    return { redirect: '/account/newsletter', changes: setChange(changes, 'shop/newsletter', sent.get('on') ?? '') };
  const reviewed = /^\/product\/([a-z0-9-]+)\/reviews$/.exec(path)?.[1];
  const text = oneLine(sent.get('text'));
  if (reviewed !== undefined && text !== '' && shop.products.some((one) => one.slug === reviewed)) {
    const review = `${oneLine(sent.get('stars'))} stars: ${text}`;
    return { redirect: path, changes: appendChange(changes, `shop/review/${reviewed}`, review) };
  }
  return undefined;
}

function clearCart(changes: Changes): Changes {
  return Object.fromEntries(Object.entries(changes).filter(([key]) => !key.startsWith('shop/cart/')));
}
