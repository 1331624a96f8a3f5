/** Tools of the airline: 14 functions of the agent. They check as the original does, in its order and with its words. */
import { calculate } from '../python/calculate.ts';
import { type Method, method } from '../python/calls.ts';
import { keyError, valueError } from '../python/errors.ts';
import { str } from '../python/format.ts';
import { attributeError, isEqual, iterate, keyOf, lengthOf, lookUp, multiply, subtract } from '../python/operations.ts';
import { Model, type PyValue } from '../python/values.ts';
import { book, createAll, findAvailable, readFlight, readReservation, readUser } from './booking.ts';
import type { Airline, Balance, DirectFlight, Payment, Reservation, ReservationFlight, User } from './model.ts';
import * as model from './model.ts';

const CERTIFICATES = ['certificate_3221322', 'certificate_3221323', 'certificate_3221324'];
const AIRPORTS =
  'SFO San Francisco,JFK New York,LAX Los Angeles,ORD Chicago,DFW Dallas,DEN Denver,SEA Seattle,ATL Atlanta,MIA Miami,' +
  'BOS Boston,PHX Phoenix,IAH Houston,LAS Las Vegas,MCO Orlando,EWR Newark,CLT Charlotte,MSP Minneapolis,DTW Detroit,' +
  'PHL Philadelphia,LGA LaGuardia';

/** Tools by name. */
export const methods: Readonly<Record<string, Method<Airline>>> = {
  book_reservation: method(
    'user_id origin destination flight_type cabin flights passengers payment_methods total_baggages nonfree_baggages insurance',
    book,
  ),
  calculate: method('expression', (_, expression) => calculate(expression!)),
  cancel_reservation: method('reservation_id', (airline, id) => {
    readReservation(airline, id!);
    const reservation = airline.reservations.edit(id as string)!;
    const refunds = reservation.payment_history.map(({ payment_id, amount }) => {
      return model.payment.of<Payment>({ payment_id, amount: -amount });
    });
    reservation.payment_history = [...reservation.payment_history, ...refunds];
    reservation.status = 'cancelled';
    return reservation;
  }),
  get_reservation_details: method('reservation_id', (airline, id) => readReservation(airline, id!)),
  get_user_details: method('user_id', (airline, id) => readUser(airline, id!)),
  list_all_airports: method('', () => {
    return AIRPORTS.split(',').map((one) => model.airport.of({ iata: one.slice(0, 3), city: one.slice(4) }));
  }),
  search_direct_flight: method('origin destination date', (airline, origin, destination, date) => {
    return searchDirect(airline, date!, origin!, destination!);
  }),
  search_onestop_flight: method('origin destination date', searchOneStop),
  send_certificate: method('user_id amount', sendCertificate),
  transfer_to_human_agents: method('summary', () => 'Transfer successful'),
  update_reservation_baggages: method('reservation_id total_baggages nonfree_baggages payment_id', updateBaggages),
  update_reservation_flights: method('reservation_id cabin flights payment_id', updateFlights),
  update_reservation_passengers: method('reservation_id passengers', (airline, id, given) => {
    const passengers = createAll(model.passenger, given!);
    if (lengthOf(passengers) !== readReservation(airline, id!).passengers.length) {
      throw valueError('Number of passengers does not match');
    }
    const reservation = airline.reservations.edit(id as string)!;
    reservation.passengers = passengers as Model[];
    return reservation;
  }),
  get_flight_status: method('flight_number date', (airline, number, date) => {
    const found = lookUp(readFlight(airline, number!).dates, date!);
    if (!found) throw valueError(`Flight ${str(number!)} not found on date ${str(date!)}`);
    return found.status;
  }),
};

/** Flights of a day that have seats. @param after earliest departure, compared as a text */
function searchDirect(
  airline: Airline,
  date: PyValue,
  origin: PyValue,
  destination: PyValue,
  after?: string,
): DirectFlight[] {
  const found: DirectFlight[] = [];
  for (const flight of airline.flights.values()) {
    if (origin !== null && !isEqual(flight.origin, origin)) continue;
    if (destination !== null && !isEqual(flight.destination, destination)) continue;
    const day = lookUp(flight.dates, date);
    if (day?.status !== 'available') continue;
    if (after !== undefined && flight.scheduled_departure_time_est < after) continue;
    const { available_seats, prices } = day as model.AvailableDate;
    const { flight_number, scheduled_departure_time_est, scheduled_arrival_time_est } = flight;
    const times = { scheduled_departure_time_est, scheduled_arrival_time_est };
    const places = { flight_number, origin: flight.origin, destination: flight.destination };
    found.push(model.directFlight.of({ ...places, ...times, available_seats, prices }));
  }
  return found;
}

/** Pairs of flights. After one that arrives the next day, that day has no leading zero, and its times are compared as texts. */
function searchOneStop(airline: Airline, ...[origin, destination, date]: PyValue[]): PyValue {
  const pairs: PyValue[] = [];
  for (const first of searchDirect(airline, date!, origin!, null)) {
    first.date = date!;
    const arrival = first.scheduled_arrival_time_est;
    const day = arrival.includes('+1') ? `2024-05-${Number((date as string).slice(-2)) + 1}` : date!;
    for (const second of searchDirect(airline, day, first.destination, destination!, arrival)) {
      second.date = day;
      pairs.push([first, second]);
    }
  }
  return pairs;
}

function sendCertificate(airline: Airline, ...[userId, amount]: PyValue[]): PyValue {
  const { payment_methods } = readUser(airline, userId!);
  const id = CERTIFICATES.find((one) => !payment_methods.has(one));
  if (id === undefined) throw valueError('Too many certificates');
  const certificate = model.certificate.of<Balance>({ id, amount: amount!, source: 'certificate' });
  airline.users.edit(userId as string)!.payment_methods.set(id, certificate);
  return `Certificate ${id} added to user ${str(userId!)} with amount ${str(amount!)}.`;
}

/**
 * Takes the price of a change from a method of payment.
 * @returns row of the reservation's history; undefined for a price of 0
 * @throws {PyError} for a method that is missing, a certificate, or too little on a gift card
 */
function payForUpdate(
  airline: Airline,
  userId: string,
  paymentId: PyValue,
  price: bigint | number,
): Payment | undefined {
  const paymentMethod = lookUp(readUser(airline, userId).payment_methods, paymentId);
  if (!paymentMethod) throw valueError('Payment method not found');
  if (paymentMethod.source === 'certificate') throw valueError('Certificate cannot be used to update reservation');
  if (paymentMethod.source === 'gift_card') {
    if ((paymentMethod as Balance).amount < price) throw valueError('Gift card balance is not enough');
    const user: User = airline.users.edit(userId)!;
    (user.payment_methods.get(paymentId as string) as Balance).amount -= Number(price);
  }
  return Number(price) === 0 ? undefined : model.payment.of<Payment>({ payment_id: paymentId, amount: price });
}

function updateBaggages(airline: Airline, ...[id, total, nonfree, paymentId]: PyValue[]): PyValue {
  const before = readReservation(airline, id!);
  const increase = subtract(nonfree!, before.nonfree_baggages);
  const price = multiply(50n, increase > 0 ? increase : 0n) as bigint | number;
  const payment = payForUpdate(airline, before.user_id, paymentId!, price);
  const reservation = airline.reservations.edit(id as string)!;
  if (payment) reservation.payment_history.push(payment);
  reservation.total_baggages = total!;
  reservation.nonfree_baggages = nonfree!;
  return reservation;
}

function updateFlights(airline: Airline, ...[id, cabin, flights, paymentId]: PyValue[]): PyValue {
  const infos = createAll(model.flightInfo, flights!);
  const before = readReservation(airline, id!);
  readUser(airline, before.user_id);
  const count = BigInt(before.passengers.length);
  const changed = iterate(infos).map((info) => renewFlight(airline, before, info, cabin!));
  const sum = (list: readonly ReservationFlight[]) => list.reduce((total, { price }) => total + price, 0n);
  const price = (sum(changed) - sum(before.flights)) * count;
  const payment = payForUpdate(airline, before.user_id, paymentId!, price);
  const reservation = airline.reservations.edit(id as string)!;
  if (payment) reservation.payment_history.push(payment);
  reservation.flights = changed;
  reservation.cabin = cabin!;
  return reservation;
}

/** Flight of a changed reservation: the old one at its old price where number, date and cabin are the same. */
function renewFlight(airline: Airline, before: Reservation, info: PyValue, cabin: PyValue): ReservationFlight {
  if (!(info instanceof Model)) throw attributeError(info, 'flight_number');
  const { flight_number, date } = info as model.FlightInfo;
  const kept = before.flights.find((old) => old.flight_number === flight_number && old.date === date);
  if (kept && isEqual(cabin, before.cabin)) return kept;
  const { flight, day } = findAvailable(airline, info as model.FlightInfo);
  const key = keyOf(cabin);
  const seats = key === undefined ? undefined : day.available_seats.get(key);
  if (seats === undefined) throw keyError(cabin);
  if (seats < before.passengers.length) throw valueError(`Not enough seats on flight ${flight_number}`);
  const { origin, destination } = flight;
  return model.reservationFlight.of({ flight_number, date, price: day.prices.get(key!)!, origin, destination });
}
