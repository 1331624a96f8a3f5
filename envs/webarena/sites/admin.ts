/** The shop's back office: orders, products, customers, reviews, reports. */
import {
  type Block,
  button,
  form,
  link,
  linkInNewTab,
  main,
  nav,
  type Page,
  page,
  row,
  select,
  table,
  textbox,
} from '../page.ts';
import { money } from '../worlds/draw.ts';
import { ORDER_STATUSES, type Order, type Product, type Review, type ShopWorld } from '../worlds/shop.ts';
import { pager, takePage } from './paging.ts';
import {
  appendChange,
  BASES,
  type Changes,
  listMade,
  notice,
  oneLine,
  type Posted,
  renderNotFound,
  type Site,
  setChange,
} from './site.ts';

const ROOT = '/admin';

export const admin: Site = {
  get: ({ shop }, ...request) => get(shop, ...request),
  post: ({ shop }, ...request) => post(shop, ...request),
};

function get(shop: ShopWorld, changes: Changes, path: string, query: URLSearchParams): Page {
  const [, root, section = '', item = ''] = path.split('/');
  if (root !== 'admin') return renderNotFound();
  switch (section) {
    case '':
      return shell(
        'Dashboard',
        row('Choose a section above.'),
        row('Orders in all', shop.orders.length),
        row('Customers', shop.customers.length),
      );
    case 'orders':
      return orders(shop, changes, query);
    case 'order': {
      const order = shop.orders.find(({ number }) => number === item);
      return order ? orderPage(shop, changes, order) : renderNotFound();
    }
    case 'products':
      return products(shop, changes, query);
    case 'product': {
      const product = shop.products.find(({ sku }) => sku === item);
      return product ? productPage(changes, product, query) : renderNotFound();
    }
    case 'customers':
      return customers(shop, query);
    case 'reviews':
      return reviews(shop, changes, query);
    case 'review': {
      const review = shop.reviews.find(({ id }) => String(id) === item);
      return review ? reviewPage(shop, changes, review) : renderNotFound();
    }
    case 'reports':
      return item === 'bestsellers' ? bestsellersPage(shop, query) : item === 'terms' ? terms(shop) : renderNotFound();
    default:
      return renderNotFound();
  }
}

const SECTIONS = ['Orders', 'Products', 'Customers', 'Reviews'];

function shell(title: string, ...blocks: readonly Block[]): Page {
  return page(
    `${title} / Harbour Admin`,
    nav(
      'Menu',
      link('Dashboard', ROOT),
      ...SECTIONS.map((name) => link(name, `${ROOT}/${name.toLowerCase()}`)),
      link('Bestsellers', `${ROOT}/reports/bestsellers`),
      link('Search Terms', `${ROOT}/reports/terms`),
    ),
    main(title, ...blocks),
  );
}

function statusOf(changes: Changes, { number, status: is }: Order): string {
  return changes[`admin/order/${number}/status`] ?? is;
}

function orders(shop: ShopWorld, changes: Changes, query: URLSearchParams): Page {
  const wanted = query.get('status') ?? 'Any';
  const name = oneLine(query.get('customer')).toLowerCase();
  const month = oneLine(query.get('month'));
  const found = shop.orders.filter((order) => {
    const by = shop.customers[order.customer]!.name.toLowerCase();
    return (
      (wanted === 'Any' || statusOf(changes, order) === wanted) && by.includes(name) && order.date.startsWith(month)
    );
  });
  const shown = takePage(found, query.get('page'), 20);
  const lines = shown.items.map((order) => [
    link(order.number, `${ROOT}/order/${order.number}`),
    order.date,
    shop.customers[order.customer]!.name,
    statusOf(changes, order),
    money(order.total),
  ]);
  return shell(
    'Orders',
    form(
      'get',
      `${ROOT}/orders`,
      {},
      row(
        'Status',
        select('Status', 'status', ['Any', ...ORDER_STATUSES], wanted),
        'Customer',
        textbox('Customer', 'customer', query.get('customer') ?? ''),
        'Month',
        textbox('Month (YYYY-MM)', 'month', month),
        button('Filter'),
      ),
    ),
    table('Orders', ['Order', 'Date', 'Customer', 'Status', 'Total'], lines),
    pager(shown, `${ROOT}/orders`, query),
  );
}

function orderPage(shop: ShopWorld, changes: Changes, order: Order): Page {
  const customer = shop.customers[order.customer]!;
  const lines = order.items.map(({ product, option, quantity }) => [
    shop.products[product]!.name,
    option,
    quantity,
    money(shop.products[product]!.price),
  ]);
  const comments = listMade(changes, `admin/order/${order.number}/comment`);
  const path = `${ROOT}/order/${order.number}`;
  return shell(
    `Order ${order.number}`,
    row('Date', order.date),
    row('Customer', customer.name),
    row('Total', money(order.total)),
    table('Items', ['Product', 'Option', 'Quantity', 'Price'], lines),
    form(
      'post',
      `${path}/status`,
      {},
      row('Status', select('Status', 'status', ORDER_STATUSES, statusOf(changes, order)), button('Save Status')),
    ),
    ...comments.map((comment) => row('Comment', comment)),
    form('post', `${path}/comment`, {}, row('Comment', textbox('Comment', 'text'), button('Submit Comment'))),
  );
}

function priceOf(changes: Changes, { sku, price }: Product): number {
  return Number(changes[`admin/product/${sku}/price`] ?? price);
}

function products(shop: ShopWorld, changes: Changes, query: URLSearchParams): Page {
  const text = oneLine(query.get('q')).toLowerCase();
  const found = shop.products.filter(({ name, sku }) => `${name} ${sku}`.toLowerCase().includes(text));
  const shown = takePage(found, query.get('page'), 20);
  const lines = shown.items.map((product) => [
    link(product.name, `${ROOT}/product/${product.sku}`),
    product.sku,
    product.category,
    money(priceOf(changes, product)),
  ]);
  return shell(
    'Products',
    form('get', `${ROOT}/products`, {}, row(textbox('Keyword', 'q', query.get('q') ?? ''), button('Search'))),
    table('Products', ['Name', 'SKU', 'Category', 'Price'], lines),
    pager(shown, `${ROOT}/products`, query),
  );
}

function productPage(changes: Changes, product: Product, query: URLSearchParams): Page {
  const path = `${ROOT}/product/${product.sku}`;
  const stock = changes[`admin/product/${product.sku}/stock`] ?? String(product.stock);
  return shell(
    product.name,
    ...notice(query, 'saved', 'You saved the product.'),
    row('SKU', product.sku),
    row(linkInNewTab('View in shop', `${BASES.shopping}/product/${product.slug}`)),
    form(
      'post',
      path,
      {},
      row('Price', textbox('Price', 'price', (priceOf(changes, product) / 100).toFixed(2))),
      row('Stock', textbox('Stock', 'stock', stock)),
      row(button('Save')),
    ),
  );
}

function customers(shop: ShopWorld, query: URLSearchParams): Page {
  const text = oneLine(query.get('q')).toLowerCase();
  const found = shop.customers.filter(({ name, phone, email }) =>
    `${name} ${phone} ${email}`.toLowerCase().includes(text),
  );
  const shown = takePage(found, query.get('page'), 20);
  return shell(
    'Customers',
    form('get', `${ROOT}/customers`, {}, row(textbox('Keyword', 'q', query.get('q') ?? ''), button('Search'))),
    table(
      'Customers',
      ['Name', 'Email', 'Phone'],
      shown.items.map(({ name, email, phone }) => [name, email, phone]),
    ),
    pager(shown, `${ROOT}/customers`, query),
  );
}

function reviewStatus(changes: Changes, { id, status: is }: Review): string {
  return changes[`admin/review/${id}`] ?? is;
}

function reviews(shop: ShopWorld, changes: Changes, query: URLSearchParams): Page {
  const text = oneLine(query.get('q')).toLowerCase();
  const wanted = query.get('status') ?? 'Any';
  const found = shop.reviews.filter((review) => {
    const is = reviewStatus(changes, review);
    return (
      is !== 'Deleted' &&
      (wanted === 'Any' || is === wanted) &&
      `${review.text} ${review.author}`.toLowerCase().includes(text)
    );
  });
  const shown = takePage(found, query.get('page'), 20);
  const lines = shown.items.map((review) => [
    link(`Review ${review.id}`, `${ROOT}/review/${review.id}`),
    review.author,
    review.stars,
    reviewStatus(changes, review),
    review.text,
  ]);
  return shell(
    'Reviews',
    form(
      'get',
      `${ROOT}/reviews`,
      {},
      row(
        'Status',
        select('Status', 'status', ['Any', 'Approved', 'Pending'], wanted),
        'Keyword',
        textbox('Keyword', 'q', query.get('q') ?? ''),
        button('Filter'),
      ),
    ),
    table('Reviews', ['Review', 'Author', 'Stars', 'Status', 'Text'], lines),
    pager(shown, `${ROOT}/reviews`, query),
  );
}

function reviewPage(shop: ShopWorld, changes: Changes, review: Review): Page {
  const is = reviewStatus(changes, review);
  const path = `${ROOT}/review/${review.id}`;
  const buttons =
    is === 'Pending'
      ? [button('Approve', 'do', 'Approved'), button('Delete', 'do', 'Deleted')]
      : is === 'Approved'
        ? [button('Delete', 'do', 'Deleted')]
        : [];
  return shell(
    `Review ${review.id}`,
    row('Product', shop.products[review.product]!.name),
    row('Author', review.author),
    row('Stars', review.stars),
    row('Text', review.text),
    row('Status', is),
    form('post', path, {}, row(...buttons)),
  );
}

/** Products by quantity sold in a span of months, most first. */
export function bestsellers(shop: ShopWorld, from: string, to: string): { product: Product; sold: number }[] {
  const sold = new Map<number, number>();
  for (const order of shop.orders) {
    if (order.date.slice(0, 7) < from || order.date.slice(0, 7) > to) continue;
    for (const { product, quantity } of order.items) sold.set(product, (sold.get(product) ?? 0) + quantity);
  }
  return [...sold]
    .map(([id, amount]) => ({ product: shop.products[id]!, sold: amount }))
    .sort((a, b) => b.sold - a.sold || a.product.id - b.product.id);
}

function bestsellersPage(shop: ShopWorld, query: URLSearchParams): Page {
  const [from, to] = [oneLine(query.get('from')), oneLine(query.get('to'))];
  const ready = /^\d{4}-\d{2}$/.test(from) && /^\d{4}-\d{2}$/.test(to);
  const lines = ready
    ? bestsellers(shop, from, to)
        .slice(0, 10)
        .map(({ product, sold }) => [product.name, money(product.price), sold])
    : [];
  return shell(
    'Bestsellers',
    form(
      'get',
      `${ROOT}/reports/bestsellers`,
      {},
      row(
        'From',
        textbox('From (YYYY-MM)', 'from', from),
        'To',
        textbox('To (YYYY-MM)', 'to', to),
        button('Show Report'),
      ),
    ),
    ready ? table('Bestsellers', ['Product', 'Price', 'Sold'], lines) : row('Give both months.'),
  );
}

function terms(shop: ShopWorld): Page {
  const lines = [...shop.terms].sort((a, b) => (a.term < b.term ? -1 : 1)).map(({ term, uses }) => [term, uses]);
  return shell('Search Terms', table('Search terms', ['Term', 'Uses'], lines));
}

function post(shop: ShopWorld, changes: Changes, path: string, sent: URLSearchParams): Posted | undefined {
  const [, , section = '', item = '', part = ''] = path.split('/');
  const order = shop.orders.find(({ number }) => section === 'order' && number === item);
  if (order && part === 'status') {
    const to = ORDER_STATUSES.find((one) => one === sent.get('status')) ?? order.status;
    return {
      redirect: `${ROOT}/order/${item}`,
      changes: setChange(changes, `admin/order/${item}/status`, to, order.status),
    };
  }
  if (order && part === 'comment') {
    return {
      redirect: `${ROOT}/order/${item}`,
      changes: appendChange(changes, `admin/order/${item}/comment`, oneLine(sent.get('text'))),
    };
  }
  const product = shop.products.find(({ sku }) => section === 'product' && sku === item);
  if (product) {
    const price = Math.round(Number(sent.get('price')) * 100);
    const stock = Number(sent.get('stock'));
    if (!Number.isInteger(stock) || stock < 0 || !(price > 0 && price < 1e8)) return { redirect: path, changes };
    const next = setChange(changes, `admin/product/${item}/price`, String(price), String(product.price));
    return {
      redirect: `${path}?saved=1`,
      changes: setChange(next, `admin/product/${item}/stock`, String(stock), String(product.stock)),
    };
  }
  const review = shop.reviews.find(({ id }) => section === 'review' && String(id) === item);
  if (review) {
    const to = sent.get('do') === 'Deleted' ? 'Deleted' : 'Approved';
    return { redirect: `${ROOT}/reviews`, changes: setChange(changes, `admin/review/${item}`, to, review.status) };
  }
  return undefined;
}
