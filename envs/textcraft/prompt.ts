/** Instructions for language models that play TextCraft. Wording is ours; actions and format of an answer are AgentGym's. */
import type { WorldPrompt } from '../../src/core/prompt.ts';

export const prompt: WorldPrompt = {
  role: 'You craft items in Minecraft. The first message lists crafting recipes, some useful and some not, and names the goal item. You reach the goal by getting and crafting items until the goal item exists.',
  short:
    'Craft the goal item in Minecraft by the recipes below.\nActions:\ncraft <amount item> using <amount item, ...> (one of the recipes, with exactly its amounts)\nget <amount item> (for items that no recipe makes)\ninventory',
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
  foreign: /[^A-Za-z0-9, ]+/g,
};
