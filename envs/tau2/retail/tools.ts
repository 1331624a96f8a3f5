/** Tools of the shop: 16 functions of the agent. They check as the original does, in its order and with its words. */

import { compareCodePoints } from '../../../src/core/python-text.ts';
import { calculate } from '../python/calculate.ts';
import { method } from '../python/calls.ts';
import { valueError } from '../python/errors.ts';
import { dumps, roundFloat, str } from '../python/format.ts';
import { countOf, isEqual, isLess, iterate, lengthOf, lookUp, lower, sortItems } from '../python/operations.ts';
import type { PyValue } from '../python/values.ts';
import type { GiftCard, Order, PaymentMethod, Shop, User, Variant } from './model.ts';
import * as model from './model.ts';

/** Tools by name. */
export const methods = {
  calculate: method<Shop>('expression', (_, expression) => calculate(expression!)),
  cancel_pending_order: method<Shop>('order_id reason', (shop, id, reason) => cancelOrder(shop, id!, reason!)),
  exchange_delivered_order_items: method<Shop>(
    'order_id item_ids new_item_ids payment_method_id',
    (shop, id, items, newItems, paymentId) => exchangeItems(shop, id!, items!, newItems!, paymentId!),
  ),
  find_user_id_by_name_zip: method<Shop>('first_name last_name zip', (shop, first, last, zip) => {
    return findUser(shop, ({ name, address }) => {
      const isNamed = lower(name.first_name) === lower(first!) && lower(name.last_name) === lower(last!);
      return isNamed && isEqual(address.zip, zip!);
    });
  }),
  find_user_id_by_email: method<Shop>('email', (shop, email) => {
    return findUser(shop, (user) => lower(user.email) === lower(email!));
  }),
  get_order_details: method<Shop>('order_id', (shop, id) => readOrder(shop, id!)),
  get_product_details: method<Shop>('product_id', (shop, id) => readProduct(shop, id!)),
  get_item_details: method<Shop>('item_id', (shop, id) => {
    for (const { variants } of shop.products.values()) {
      const variant = lookUp(variants, id!);
      if (variant) return variant;
    }
    throw valueError('Item not found');
  }),
  get_user_details: method<Shop>('user_id', (shop, id) => readUser(shop, id!)),
  list_all_product_types: method<Shop>('', (shop) => {
    const ids = Array.from(shop.products.values(), ({ name, product_id }) => [name, product_id] as const);
    return dumps(new Map([...new Map(ids)].sort(([a], [b]) => compareCodePoints(a, b))));
  }),
  modify_pending_order_address: method<Shop>(
    'order_id address1 address2 city state country zip',
    (shop, id, ...values) => {
      checkPending(readOrder(shop, id!));
      const order = editOrder(shop, id!);
      order.address = makeAddress(values);
      return order;
    },
  ),
  modify_pending_order_items: method<Shop>(
    'order_id item_ids new_item_ids payment_method_id',
    (shop, id, items, newItems, paymentId) => modifyItems(shop, id!, items!, newItems!, paymentId!),
  ),
  modify_pending_order_payment: method<Shop>('order_id payment_method_id', (shop, id, paymentId) => {
    return modifyPayment(shop, id!, paymentId!);
  }),
  modify_user_address: method<Shop>('user_id address1 address2 city state country zip', (shop, id, ...values) => {
    readUser(shop, id!);
    const address = makeAddress(values);
    const user = lookUp({ get: (key) => shop.users.edit(key) }, id!)!;
    user.address = address;
    return user;
  }),
  return_delivered_order_items: method<Shop>('order_id item_ids payment_method_id', (shop, id, items, paymentId) => {
    return returnItems(shop, id!, items!, paymentId!);
  }),
  transfer_to_human_agents: method<Shop>('summary', () => 'Transfer successful'),
};

function readOrder(shop: Shop, id: PyValue): Order {
  const order = lookUp(shop.orders, id);
  if (!order) throw valueError('Order not found');
  return order;
}

/** Order to change; it exists. */
function editOrder(shop: Shop, id: PyValue): Order {
  return shop.orders.edit(id as string)!;
}

function readUser(shop: Shop, id: PyValue): User {
  const user = lookUp(shop.users, id);
  if (!user) throw valueError('User not found');
  return user;
}

function readProduct(shop: Shop, id: PyValue): model.Product {
  const product = lookUp(shop.products, id);
  if (!product) throw valueError('Product not found');
  return product;
}

function findUser(shop: Shop, isMeant: (user: User) => boolean): string {
  for (const [id, user] of shop.users) if (isMeant(user)) return id;
  throw valueError('User not found');
}

function readPaymentMethod(shop: Shop, userId: string, id: PyValue): PaymentMethod {
  const paymentMethod = lookUp(readUser(shop, userId).payment_methods, id);
  if (!paymentMethod) throw valueError('Payment method not found');
  return paymentMethod;
}

function isGiftCard(paymentMethod: PaymentMethod): paymentMethod is GiftCard {
  return paymentMethod.source === 'gift_card';
}

/** Adds to the balance of a method of payment that is a gift card; nothing happens to others. */
function credit(shop: Shop, userId: string, id: PyValue, amount: number): void {
  if (!isGiftCard(readPaymentMethod(shop, userId, id))) return;
  const card = shop.users.edit(userId)!.payment_methods.get(id as string) as GiftCard;
  card.balance = roundFloat(card.balance + amount, 2);
}

function checkPending(order: Order): void {
  if (!order.status.includes('pending')) throw valueError('Non-pending order cannot be modified');
}

function makeAddress(values: readonly PyValue[]): model.Address {
  const [address1, address2, city, state, country, zip] = values as [
    PyValue,
    PyValue,
    PyValue,
    PyValue,
    PyValue,
    PyValue,
  ];
  return model.address.of({ address1, address2, city, country, state, zip });
}

function makePayment(type: 'payment' | 'refund', amount: PyValue, id: PyValue): model.Payment {
  return model.payment.of({ transaction_type: type, amount, payment_method_id: id });
}

function cancelOrder(shop: Shop, id: PyValue, reason: PyValue): Order {
  if (readOrder(shop, id).status !== 'pending') throw valueError('Non-pending order cannot be cancelled');
  const isReason = lookUp(
    new Map([
      ['no longer needed', true],
      ['ordered by mistake', true],
    ]),
    reason,
  );
  if (!isReason) throw valueError('Invalid reason');
  const order = editOrder(shop, id);
  const refunds = order.payment_history.map(({ amount, payment_method_id }) => {
    const refund = makePayment('refund', amount, payment_method_id);
    credit(shop, order.user_id, payment_method_id, amount);
    return refund;
  });
  order.status = 'cancelled';
  order.cancel_reason = reason;
  order.payment_history = [...order.payment_history, ...refunds];
  return order;
}

/** @throws {PyError} where the order has fewer of an item than are named */
function checkItems(order: Order, ids: PyValue, complain: (id: string) => string): void {
  const held = order.items.map(({ item_id }) => item_id);
  for (const id of iterate(ids)) if (countOf(ids, id) > countOf(held, id)) throw valueError(complain(str(id)));
}

/** Pairs of an item and the variant that replaces it. */
function* pairItems(
  shop: Shop,
  order: Order,
  ids: PyValue,
  newIds: PyValue,
): Generator<{ readonly id: PyValue; readonly oldPrice: number; readonly variant: Variant }> {
  const news = iterate(newIds);
  for (const [i, id] of iterate(ids).entries()) {
    const newId = news[i]!;
    const item = order.items.find(({ item_id }) => isEqual(item_id, id));
    if (!item) throw valueError(`Item ${str(id)} not found`);
    const variant = lookUp(readProduct(shop, item.product_id).variants, newId);
    if (!variant) throw valueError('Variant not found');
    if (!variant.available) throw valueError(`New item ${str(newId)} not found or available`);
    yield { id, oldPrice: item.price, variant };
  }
}

function exchangeItems(shop: Shop, id: PyValue, items: PyValue, newItems: PyValue, paymentId: PyValue): Order {
  const before = readOrder(shop, id);
  if (before.status !== 'delivered') throw valueError('Non-delivered order cannot be exchanged');
  checkItems(before, items, (item) => `Number of ${item} not found.`);
  if (lengthOf(items) !== lengthOf(newItems)) {
    throw valueError('The number of items to be exchanged should match.');
  }
  let difference: number | bigint = 0n; // an int until an item is added
  for (const { oldPrice, variant } of pairItems(shop, before, items, newItems)) {
    difference = Number(difference) + (variant.price - oldPrice);
  }
  if (typeof difference === 'number') difference = roundFloat(difference, 2);
  const paymentMethod = readPaymentMethod(shop, before.user_id, paymentId);
  if (isGiftCard(paymentMethod) && isLess(paymentMethod.balance, difference)) {
    throw valueError('Insufficient gift card balance to pay for the price difference');
  }
  const order = editOrder(shop, id);
  order.status = 'exchange requested';
  order.exchange_items = sortItems(items);
  order.exchange_new_items = sortItems(newItems);
  order.exchange_payment_method_id = paymentId;
  order.exchange_price_difference = difference;
  return order;
}

function modifyItems(shop: Shop, id: PyValue, items: PyValue, newItems: PyValue, paymentId: PyValue): Order {
  const before = readOrder(shop, id);
  if (before.status !== 'pending') throw valueError('Non-pending order cannot be modified');
  checkItems(before, items, (item) => `${item} not found`);
  if (lengthOf(items) !== lengthOf(newItems)) throw valueError('The number of items to be exchanged should match');
  const news = iterate(newItems);
  const olds = iterate(items);
  let difference: number | bigint = 0n;
  let last: Variant | undefined;
  const pairs = pairItems(shop, before, items, newItems);
  for (const [i, old] of olds.entries()) {
    if (isEqual(old, news[i]!)) throw valueError('The new item id should be different from the old item id');
    const { oldPrice, variant } = pairs.next().value!;
    difference = Number(difference) + (variant.price - oldPrice);
    last = variant;
  }
  const paymentMethod = readPaymentMethod(shop, before.user_id, paymentId);
  if (isGiftCard(paymentMethod) && isLess(paymentMethod.balance, difference)) {
    throw valueError('Insufficient gift card balance to pay for the new item');
  }
  const order = editOrder(shop, id);
  const amount = Math.abs(Number(difference));
  order.payment_history.push(makePayment(difference > 0 ? 'payment' : 'refund', amount, paymentId));
  credit(shop, before.user_id, paymentId, -Number(difference));
  // Each item gets price and options of the last variant: a fault of the original that its recordings show.
  for (const [i, old] of olds.entries()) {
    const item = order.items.find(({ item_id }) => isEqual(item_id, old));
    if (!item) throw valueError(`Item ${str(old)} not found`);
    item.item_id = news[i] as string;
    item.price = last!.price;
    item.options = last!.options;
  }
  order.status = 'pending (item modified)';
  return order;
}

function modifyPayment(shop: Shop, id: PyValue, paymentId: PyValue): Order {
  const before = readOrder(shop, id);
  checkPending(before);
  const paymentMethod = readPaymentMethod(shop, before.user_id, paymentId);
  const [first] = before.payment_history;
  if (before.payment_history.length !== 1 || first!.transaction_type !== 'payment') {
    throw valueError('There should be exactly one payment for a pending order');
  }
  const { amount, payment_method_id: oldId } = first!;
  if (isEqual(oldId, paymentId)) throw valueError('The new payment method should be different from the current one');
  if (isGiftCard(paymentMethod) && paymentMethod.balance < amount) {
    throw valueError('Insufficient gift card balance to pay for the order');
  }
  const order = editOrder(shop, id);
  order.payment_history.push(makePayment('payment', amount, paymentId), makePayment('refund', amount, oldId));
  credit(shop, before.user_id, paymentId, -amount);
  credit(shop, before.user_id, oldId, amount);
  return order;
}

function returnItems(shop: Shop, id: PyValue, items: PyValue, paymentId: PyValue): Order {
  const before = readOrder(shop, id);
  if (before.status !== 'delivered') throw valueError('Non-delivered order cannot be returned');
  const paymentMethod = readPaymentMethod(shop, before.user_id, paymentId);
  if (!isGiftCard(paymentMethod) && paymentId !== before.payment_history[0]!.payment_method_id) {
    throw valueError('Payment method should be the original payment method');
  }
  checkItems(before, items, () => 'Some item not found');
  const order = editOrder(shop, id);
  order.status = 'return requested';
  order.return_items = sortItems(items);
  order.return_payment_method_id = paymentId;
  return order;
}
