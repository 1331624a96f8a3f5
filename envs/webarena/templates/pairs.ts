/** Tasks over two sites. */
import { contributors } from '../sites/code.ts';
import { money } from '../worlds/draw.ts';
import { minutes } from '../worlds/map.ts';
import { choose, click, enter, fill, goTo, press, type Template } from './template.ts';

export const pairs: readonly Template[] = [
  {
    id: 'map/wiki-postcode',
    label: 'map',
    sites: ['wikipedia', 'map'],
    unseen: false,
    draw(world, rng) {
      const article = rng.pick(world.wiki.articles.slice(0, 100));
      const architect = article.facts.Architect!;
      const found = world.wiki.articles.filter(({ facts }) => Object.values(facts).includes(architect));
      const place = world.map.places.filter(({ name }) => name === article.title);
      if (found.length !== 1 || place.length !== 1) return undefined;
      return {
        intent: `What is the postcode of the place whose architect was "${architect}"?`,
        answer: { type: 'text', value: place[0]!.postcode },
        plan: [
          enter('Search articles', architect),
          click(article.title),
          goTo('map'),
          enter('Search places', article.title),
          click(article.title),
        ],
      };
    },
  },
  {
    id: 'map/wiki-time',
    label: 'map',
    sites: ['wikipedia', 'map'],
    unseen: false,
    draw(world, rng) {
      const article = rng.pick(world.wiki.articles.slice(0, 100));
      const year = article.facts.Founded!;
      const found = world.wiki.articles.filter(({ facts }) => Object.values(facts).includes(year));
      const to = rng.pick(world.map.places);
      const findSameName = (name: string) => world.map.places.filter((place) => place.name === name);
      const from = findSameName(article.title);
      if (found.length !== 1 || from.length !== 1 || findSameName(to.name).length !== 1 || to.name === article.title)
        return undefined;
      return {
        intent: `How long does it take by car from the place founded in "${year}" to "${to.name}"?`,
        answer: { type: 'minutes', value: minutes(world.map.metres(from[0]!.id, to.id, 'car'), 'car') },
        plan: [
          enter('Search articles', year),
          click(article.title),
          goTo('map'),
          click('Directions'),
          fill('From', article.title),
          fill('To', to.name),
          press('Find route'),
        ],
      };
    },
  },
  {
    id: 'reddit/repository-post',
    label: 'reddit',
    sites: ['gitlab', 'reddit'],
    unseen: false,
    draw(world, rng) {
      const project = rng.pick(world.code.projects);
      const [first, second] = contributors(project);
      const forum = rng.pick(world.forum.forums);
      if (!first || first.commits === second?.commits) return undefined;
      return {
        intent: `Create a post in the forum "${forum}" with the title "Thanks" and the name of the top contributor of the project "${project.name}" as the body.`,
        changes: { [`forum/post/${forum}/1`]: `Thanks: ${first.user}` },
        plan: [
          click(project.name),
          click('Contributors'),
          goTo('reddit'),
          click('Submit'),
          choose('Forum', forum),
          fill('Title', 'Thanks'),
          fill('Body', first.user),
          press('Create Post'),
        ],
      };
    },
  },
  {
    id: 'reddit/product-post',
    label: 'reddit',
    sites: ['shopping', 'reddit'],
    unseen: false,
    draw(world, rng) {
      const product = rng.pick(world.shop.products);
      const forum = rng.pick(world.forum.forums);
      return {
        intent: `Create a post in the forum "${forum}" with the title "${product.name}" and its price in the shop as the body.`,
        changes: { [`forum/post/${forum}/1`]: `${product.name}: ${money(product.price)}` },
        plan: [
          enter('Search', product.name),
          click(product.name),
          goTo('reddit'),
          click('Submit'),
          choose('Forum', forum),
          fill('Title', product.name),
          fill('Body', money(product.price)),
          press('Create Post'),
        ],
      };
    },
  },
];
