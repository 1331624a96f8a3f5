/** The task as its description states it: what kind it is, what it is about, where, and which box stands for what. */

/** Parts of a description; '' for a part that it does not state. */
export interface TaskDescription {
  /** Words for the kind of task: "temperature", "conductive", "find animal". */
  readonly goal: string;
  /** The thing it is about, as named: "unknown substance B", "green paint". */
  readonly target: string;
  /** Place that the thing is around, as stated. */
  readonly place: string;
  /** Answer boxes with the word that each stands for; "box" where there is one. */
  readonly boxes: readonly { readonly name: string; readonly means: string }[];
  readonly boxPlace: string;
  /** Temperature to compare with, in °C. */
  readonly limit: number | null;
}

interface Form {
  readonly text: RegExp;
  read(groups: Readonly<Record<string, string>>): Partial<TaskDescription> & Pick<TaskDescription, 'goal'>;
}

const box = (name: string | undefined, means: string) => ({ name: name!, means });

const FORMS: readonly Form[] = [
  {
    text: /measure the temperature of (?<target>.+?), which is located around the (?<place>.+?)\. .*? is above (?<limit>-?[\d.]+) degrees celsius, place it in the (?<yes>.+?)\. .*?, place it in the (?<no>.+?)\. The boxes are located around the (?<boxes>.+?)\.$/,
    read: ({ target, place, limit, yes, no, boxes }) => ({
      goal: 'temperature',
      target: target!,
      place: place!,
      limit: Number(limit),
      boxes: [box(yes, 'above'), box(no, 'below')],
      boxPlace: boxes!,
    }),
  },
  {
    text: /measure the melting point of (?<target>.+?), which is located around the (?<place>.+?)\. .*? is above (?<limit>-?[\d.]+) degrees celsius, focus on the (?<yes>.+?)\. .*?, focus on the (?<no>.+?)\. The boxes are located around the (?<boxes>.+?)\.$/,
    read: ({ target, place, limit, yes, no, boxes }) => ({
      goal: 'melting point',
      target: target!,
      place: place!,
      limit: Number(limit),
      boxes: [box(yes, 'above'), box(no, 'below')],
      boxPlace: boxes!,
    }),
  },
  {
    text: /determine if (?<target>.+?) is electrically conductive\. The .+? is located around the (?<place>.+?)\. .*? conductive, place it in the (?<yes>.+?)\. .*? place it in the (?<no>.+?)\.$/,
    read: ({ target, place, yes, no }) => ({
      goal: 'conductive',
      target: target!,
      place: place!,
      boxes: [box(yes, 'conductive'), box(no, 'nonconductive')],
    }),
  },
  {
    text: /find a\(n\) (?<what>.+?)\. First, focus on the thing\. Then, move it to the (?<yes>.+?) in the (?<boxes>.+?)\.$/,
    read: ({ what, yes, boxes }) => ({ goal: `find ${what}`, boxes: [box(yes, 'box')], boxPlace: boxes! }),
  },
  {
    text: /find the animal with the (?<span>longest|shortest) life span(?<both>, then the shortest)?/,
    read: ({ span, both }) => ({ goal: `lifespan ${both ? 'longest then shortest' : span}`, place: 'outside' }),
  },
  {
    text: /create the substance '(?<target>.+?)'\. .*? near the (?<place>.+?)\. When/,
    read: ({ target, place }) => ({ goal: 'mix', target: target!, place: place! }),
  },
  {
    text: /use chemistry to create (?<target>.+?)\. When you are (?<when>done|part)/,
    read: ({ target, when }) => ({ goal: when === 'done' ? 'mix paint' : 'mix paint twice', target: target! }),
  },
  {
    text: /task is to (?<verb>boil|melt|freeze|change the state of matter of) (?<target>.+?)\. /,
    read: ({ verb, target }) => ({ goal: verb!.split(' ')[0]!, target: target! }),
  },
  {
    text: /turn on the (?<target>.+?)(?: by powering it using a (?<source>renewable|nonrenewable) power source)?\. First/,
    read: ({ target, source }) => ({ goal: source ? `power ${source}` : 'power', target: target! }),
  },
  {
    text: /focus on the (?:\d+ )?life stages of the (?<target>.+?)(?: plant)?, starting/,
    read: ({ target }) => ({ goal: 'stages', target: target!, place: 'outside' }),
  },
  {
    text: /grow a (?<target>.+?)(?<plant> plant from seed)?\. .*?found in the (?<place>.+?)\./,
    read: ({ target, plant, place }) => ({ goal: plant ? 'grow plant' : 'grow fruit', target: target!, place: place! }),
  },
  {
    text: /inclined planes \((?<one>.+?), (?<other>.+?)\) has the (?<what>.+?)\. /,
    read: ({ one, other, what }) => ({ goal: `plane ${what}`, target: `${one} ${other}` }),
  },
  {
    text: /whether (?<target>.+?) is a dominant or recessive trait in the (?<plant>.+?) plant\. .*? focus on the (?<yes>.+?)\. .*? focus on the (?<no>.+?)\.$/,
    read: ({ target, plant, yes, no }) => ({
      goal: 'trait',
      target: `${target} ${plant}`,
      boxes: [box(yes, 'dominant'), box(no, 'recessive')],
    }),
  },
];

const NOTHING: TaskDescription = { goal: 'task', target: '', place: '', boxes: [], boxPlace: '', limit: null };

/** Reads a description; `NOTHING` for wording that no form fits. */
export function readTaskDescription(description: string): TaskDescription {
  for (const { text, read } of FORMS) {
    const groups = text.exec(description)?.groups;
    if (groups) return { ...NOTHING, ...read(groups) };
  }
  return NOTHING;
}
