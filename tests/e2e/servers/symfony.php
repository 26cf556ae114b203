<?php
// SPDX-License-Identifier: Apache-2.0
// An application of Symfony's components as its skeleton puts them together: routes, controllers, listeners, a template of Twig. The
// controllers have recursion, closures, generators, a sort's callback and an exception that is caught.
foreach (['HttpKernel', 'Routing', 'EventDispatcher', 'HttpFoundation'] as $component)
    require_once "Symfony/Component/$component/autoload.php";
require_once 'Twig/autoload.php';

use Symfony\Component\EventDispatcher\EventDispatcher;
use Symfony\Component\HttpFoundation\{JsonResponse, Request, RequestStack, Response};
use Symfony\Component\HttpKernel\Controller\{ArgumentResolver, ControllerResolver};
use Symfony\Component\HttpKernel\EventListener\RouterListener;
use Symfony\Component\HttpKernel\HttpKernel;
use Symfony\Component\Routing\Matcher\UrlMatcher;
use Symfony\Component\Routing\{RequestContext, Route, RouteCollection};
use Twig\Environment;
use Twig\Loader\ArrayLoader;

class Shop
{
    public static function price(int $count): int
    {
        $sum = 0;
        for ($i = 1; $i <= $count; $i++)
            $sum += $i * 7 % 13;
        return $sum;
    }

    private function down(int $depth): int
    {
        return $depth ? $this->down($depth - 1) : self::price(3000);
    }

    private function items(int $count): iterable
    {
        for ($i = 0; $i < $count; $i++)
            yield ['id' => $i, 'price' => self::price(60)];
    }

    public function deep(int $n): Response
    {
        return new Response((string) $this->down($n % 100));
    }

    public function page(): Response
    {
        $twig = new Environment(new ArrayLoader(['page' => '{% for item in items %}<p>{{ item.id }}: {{ item.price|number_format(2) }}</p>{% endfor %}']));
        return new Response($twig->render('page', ['items' => iterator_to_array($this->items(60))]));
    }

    public function json(): Response
    {
        return new JsonResponse(array_map(fn ($item) => $item + ['tax' => self::price(40)], iterator_to_array($this->items(60))));
    }

    public function sort(): Response
    {
        $ids = range(1, 120);
        usort($ids, fn ($a, $b) => self::price($a % 37) <=> self::price($b % 37));
        return new Response(implode(',', $ids));
    }

    public function check(int $n): Response
    {
        try {
            if ($n % 2)
                throw new DomainException('odd');
            return new Response((string) self::price(500));
        } catch (DomainException $e) {
            return new Response($e->getMessage() . self::price(2000));
        }
    }
}

$routes = new RouteCollection();
foreach (['deep' => '/deep/{n}', 'page' => '/page', 'json' => '/json', 'sort' => '/sort', 'check' => '/check/{n}'] as $name => $path)
    $routes->add($name, new Route($path, ['_controller' => [Shop::class, $name]]));
$request = Request::createFromGlobals();
$stack = new RequestStack();
$dispatcher = new EventDispatcher();
$dispatcher->addSubscriber(new RouterListener(new UrlMatcher($routes, new RequestContext()), $stack));
$kernel = new HttpKernel($dispatcher, new ControllerResolver(), $stack, new ArgumentResolver());
$response = $kernel->handle($request);
$response->send();
$kernel->terminate($request, $response);
