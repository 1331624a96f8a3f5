/** Booking of the airline, and the look-ups that its tools share. */
import { keyError, valueError } from '../python/errors.ts';
import { str } from '../python/format.ts';
import type { ModelType } from '../python/model.ts';
import { add, attributeError, isEqual, iterate, lengthOf, lookUp, multiply } from '../python/operations.ts';
import { isDict, Model, type PyValue } from '../python/values.ts';
import type { Airline, AvailableDate, Balance, Flight, FlightInfo, Payment, Reservation, User } from './model.ts';
import * as model from './model.ts';

/** Ids that new reservations get. */
const NEW_IDS = ['HATHAT', 'HATHAU', 'HATHAV'];
const NOW = '2024-05-15T15:00:00';

/** @throws {PyError} */
export function readUser(airline: Airline, id: PyValue): User {
  const user = lookUp(airline.users, id);
  if (!user) throw valueError(`User ${str(id)} not found`);
  return user;
}

/** @throws {PyError} */
export function readReservation(airline: Airline, id: PyValue): Reservation {
  const reservation = lookUp(airline.reservations, id);
  if (!reservation) throw valueError(`Reservation ${str(id)} not found`);
  return reservation;
}

/** @throws {PyError} */
export function readFlight(airline: Airline, number: PyValue): Flight {
  const flight = lookUp(airline.flights, number);
  if (!flight) throw valueError(`Flight ${str(number)} not found`);
  return flight;
}

/** Flight on a date on which it has seats. @throws {PyError} */
export function findAvailable(
  airline: Airline,
  { flight_number, date }: FlightInfo,
): { flight: Flight; day: AvailableDate } {
  const flight = readFlight(airline, flight_number);
  const day = flight.dates.get(date);
  if (!day) throw valueError(`Flight ${flight_number} not found on date ${date}`);
  if (day.status !== 'available') throw valueError(`Flight ${flight_number} not available on date ${date}`);
  return { flight, day: day as AvailableDate };
}

/** Makes models of a list of dictionaries; a list with anything else in it stays as it is. @throws {PyError} */
export function createAll(type: ModelType, given: PyValue): PyValue {
  const items = iterate(given);
  return items.every(isDict) ? items.map((one) => type.create(one)) : given;
}

/** Books a reservation: everything is checked before anything is paid. */
export function book(airline: Airline, ...values: PyValue[]): PyValue {
  const [userId, origin, destination, flightType, cabin, flights, passengers, payments, total, nonfree, insurance] =
    values as [PyValue, PyValue, PyValue, PyValue, PyValue, PyValue, PyValue, PyValue, PyValue, PyValue, PyValue];
  const infos = createAll(model.flightInfo, flights);
  const travellers = createAll(model.passenger, passengers);
  const payers = createAll(model.payment, payments);
  const user = readUser(airline, userId);
  const id = NEW_IDS.find((one) => !airline.reservations.has(one));
  if (id === undefined) throw valueError('Too many reservations');
  const reservation = model.reservation.of<Reservation>({
    reservation_id: id,
    user_id: userId,
    origin,
    destination,
    flight_type: flightType,
    cabin,
    flights: [],
    passengers: travellers,
    payment_history: payers,
    created_at: NOW,
    total_baggages: total,
    nonfree_baggages: nonfree,
    insurance,
  });
  const count = BigInt(lengthOf(travellers));
  let price: PyValue = addFlights(airline, reservation, infos, count);
  if (isEqual(insurance, 'yes')) price = add(price, 30n * count);
  price = add(price, multiply(50n, nonfree));
  checkPayments(user, reservation.payment_history, price);
  pay(airline, userId as string, reservation.payment_history);
  for (const { flight_number, date } of reservation.flights) {
    const day = airline.flights.edit(flight_number)!.dates.get(date) as AvailableDate;
    const seats = day.available_seats.get(cabin as string)!;
    day.available_seats.set(cabin as string, seats - count);
  }
  airline.reservations.set(id, reservation);
  airline.users.edit(userId as string)!.reservations.push(id);
  return reservation;
}

/** Adds the flights to a reservation. @returns their price for all passengers */
function addFlights(airline: Airline, reservation: Reservation, infos: PyValue, count: bigint): bigint {
  let price = 0n;
  for (const info of iterate(infos)) {
    if (!(info instanceof Model)) throw attributeError(info, 'flight_number');
    const { flight, day } = findAvailable(airline, info as FlightInfo);
    const { flight_number, date } = info as FlightInfo;
    const cabin = reservation.cabin as string;
    if (day.available_seats.get(cabin)! < count) throw valueError(`Not enough seats on flight ${flight_number}`);
    const { origin, destination } = flight;
    const one = day.prices.get(cabin)!;
    reservation.flights.push(model.reservationFlight.of({ origin, destination, flight_number, date, price: one }));
    price += one * count;
  }
  return price;
}

function checkPayments(user: User, payments: readonly Payment[], price: PyValue): void {
  for (const { payment_id, amount } of payments) {
    const paymentMethod = user.payment_methods.get(payment_id);
    if (!paymentMethod) throw valueError(`Payment method ${payment_id} not found`);
    if (paymentMethod.source !== 'credit_card' && (paymentMethod as Balance).amount < amount) {
      throw valueError(`Not enough balance in payment method ${payment_id}`);
    }
  }
  const paid = payments.reduce((sum, { amount }) => sum + amount, 0n);
  if (isEqual(paid, price)) return;
  throw valueError(`Payment amount does not add up, total price is ${str(price)}, but paid ${paid}`);
}

/** Takes the payments: a gift card is reduced, a certificate is gone as a whole. */
function pay(airline: Airline, userId: string, payments: readonly Payment[]): void {
  for (const { payment_id, amount } of payments) {
    const methods = airline.users.edit(userId)!.payment_methods;
    const paymentMethod = methods.get(payment_id);
    if (!paymentMethod) throw keyError(payment_id); // a certificate that is named twice
    if (paymentMethod.source === 'gift_card') (paymentMethod as Balance).amount -= Number(amount);
    else if (paymentMethod.source === 'certificate') methods.delete(payment_id);
  }
}
