/**
 * What a language model is told of each world. Wording is ours; what can be done, and how an answer must look, is as
 * in AgentGym. One table makes instructions and parsers, so that they cannot drift apart.
 */
import type { WorldPrompt } from '../core/prompt.ts';

const PLAIN_TEXT = /[^A-Za-z0-9, ]+/g;

export const WORLDS: Readonly<Record<string, WorldPrompt>> = {
  textcraft: {
    role: 'You craft items in Minecraft. The first message lists crafting recipes, some useful and some not, and names the goal item. You reach the goal by getting and crafting items until the goal item exists.',
    forms: [
      {
        name: 'craft',
        template: 'craft {makes} using {uses}',
        meaning:
          'makes an item by one of the recipes, e.g. craft 4 oak planks using 1 oak log; write amounts as in the recipe',
      },
      { name: 'get', template: 'get {item}', meaning: 'finds an item that no recipe makes, e.g. get 2 oak log' },
      { name: 'inventory', template: 'inventory', meaning: 'shows what you hold' },
    ],
    hints: [
      'Always write the amount before the item.',
      'Items that a recipe makes cannot be found, only crafted.',
      'A recipe may name a kind (planks): craft with a particular item of that kind (oak planks).',
      'Craft exactly what the recipe makes, no more and no less; repeat it for more.',
    ],
    format: 'react',
    foreign: PLAIN_TEXT,
  },
  babyai: {
    role: 'You walk through rooms of a grid world and fulfil the instruction given as your goal. Each message says what is in sight and where, and which actions are available.',
    forms: [
      { name: 'turn_left', template: 'turn left', meaning: 'turns left on the spot' },
      { name: 'turn_right', template: 'turn right', meaning: 'turns right on the spot' },
      { name: 'move_forward', template: 'move forward', meaning: 'one step ahead' },
      {
        name: 'toggle_and_go_through',
        template: 'toggle and go through {door}',
        meaning: 'opens a closed or locked door and walks through; a locked one needs the key of its colour in hand',
      },
      { name: 'go_through', template: 'go through {door}', meaning: 'walks through an open door' },
      { name: 'go_to', template: 'go to {object}', meaning: 'walks up to an object, e.g. go to red ball 1' },
      { name: 'pickup', template: 'pickup {object}', meaning: 'walks up to an object and picks it up' },
      { name: 'drop', template: 'drop', meaning: 'puts down what you carry' },
      { name: 'toggle', template: 'toggle', meaning: 'opens or closes the door right in front of you' },
      { name: 'check', template: 'check available actions', meaning: 'lists the actions' },
    ],
    hints: [
      'Objects are named by colour, kind and number, as in the last message.',
      'You can carry one object at a time.',
    ],
    format: 'react',
    foreign: PLAIN_TEXT,
  },
  sciworld: {
    role: 'You work in a simulated house with laboratory equipment and carry out the science task you are given. You earn points for each step towards it; a wrong focus ends the task.',
    forms: [
      { name: 'open', template: 'open {object}', meaning: 'opens a container or door' },
      { name: 'close', template: 'close {object}', meaning: 'closes it' },
      { name: 'activate', template: 'activate {object}', meaning: 'switches a device on' },
      { name: 'deactivate', template: 'deactivate {object}', meaning: 'switches it off' },
      { name: 'connect', template: 'connect {one} to {other}', meaning: 'connects electrical components' },
      { name: 'disconnect', template: 'disconnect {object}', meaning: 'disconnects a component' },
      { name: 'use_on', template: 'use {tool} on {object}', meaning: 'uses a device on something' },
      { name: 'use', template: 'use {object}', meaning: 'uses a device' },
      { name: 'look_around', template: 'look around', meaning: 'describes the room' },
      { name: 'look_at', template: 'look at {object}', meaning: 'describes something in detail' },
      { name: 'look_in', template: 'look in {object}', meaning: 'lists what a container holds' },
      { name: 'read', template: 'read {object}', meaning: 'reads a note or book' },
      { name: 'move', template: 'move {object} to {place}', meaning: 'moves something into a container' },
      { name: 'pick_up', template: 'pick up {object}', meaning: 'takes something along' },
      { name: 'put_down', template: 'put down {object}', meaning: 'puts it down' },
      { name: 'pour', template: 'pour {liquid} into {container}', meaning: 'pours a liquid' },
      { name: 'dunk', template: 'dunk {object} into {liquid}', meaning: 'dips something into a liquid' },
      { name: 'mix', template: 'mix {container}', meaning: 'mixes what a container holds' },
      { name: 'go_to', template: 'go to {place}', meaning: 'walks to a neighbouring place' },
      { name: 'eat', template: 'eat {object}', meaning: 'eats something' },
      { name: 'flush', template: 'flush {object}', meaning: 'flushes a toilet' },
      { name: 'focus_on', template: 'focus on {object}', meaning: 'marks the object the task asks about' },
      { name: 'wait_one', template: 'wait1', meaning: 'lets one step pass' },
      { name: 'wait', template: 'wait', meaning: 'lets ten steps pass' },
      { name: 'examine', template: 'examine {object}', meaning: 'examines something' },
      { name: 'task', template: 'task', meaning: 'repeats the task' },
      { name: 'inventory', template: 'inventory', meaning: 'shows what you carry' },
    ],
    hints: ['Focus only on what the task names, and only when it asks for it.'],
    format: 'react',
  },
  searchqa: {
    role: 'You answer a question. Reason first, search for what you do not know as often as needed, and answer when you are sure.',
    forms: [
      {
        name: 'search',
        template: '<search>{query}</search>',
        meaning: 'looks passages up; they come back between <information> tags',
      },
      { name: 'answer', template: '<answer>{answer}</answer>', meaning: 'gives the final answer, in a few words' },
    ],
    hints: [],
    format: 'think',
  },
  webarena: {
    role: 'You carry out a task in a web browser. Each message shows the part of the page in view as an accessibility tree whose elements carry numbers, its address, the task, and your last action.',
    forms: [
      { name: 'click', template: 'click [{element}]', meaning: 'clicks an element' },
      {
        name: 'type_text',
        template: 'type [{element}] [{text}]',
        meaning: 'types into a field and presses Enter; a third [0] leaves Enter out',
      },
      { name: 'hover', template: 'hover [{element}]', meaning: 'hovers over an element' },
      { name: 'press', template: 'press [{keys}]', meaning: 'presses keys, e.g. press [Ctrl+v]' },
      { name: 'scroll', template: 'scroll [{direction}]', meaning: 'scrolls up or down' },
      { name: 'new_tab', template: 'new_tab', meaning: 'opens a tab' },
      { name: 'tab_focus', template: 'tab_focus [{tab}]', meaning: 'goes to a tab by its index' },
      { name: 'close_tab', template: 'close_tab', meaning: 'closes the tab' },
      { name: 'goto', template: 'goto [{url}]', meaning: 'opens an address' },
      { name: 'go_back', template: 'go_back', meaning: 'one page back' },
      { name: 'go_forward', template: 'go_forward', meaning: 'one page forward' },
      { name: 'stop', template: 'stop [{answer}]', meaning: 'ends the task, with the answer if it asks for one' },
    ],
    hints: ['Use only elements of the page as it is now.'],
    format: 'fenced',
  },
};

/** The prompt of a world; of one that is not in the table, made from its description. */
export function worldPrompt(env: string, description: string): WorldPrompt {
  const known = Object.hasOwn(WORLDS, env) ? WORLDS[env] : undefined;
  return known ?? { role: description, forms: [], hints: [], format: 'react' };
}
