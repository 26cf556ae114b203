// SPDX-License-Identifier: Apache-2.0
import java.util.*;
import java.util.function.*;
import java.util.regex.*;
import java.util.stream.*;

/* A bit of everything that compilers inline: text, regular expressions, streams, lambdas, interfaces. Load MILLISECONDS:
 * works so long, says "up", and sleeps a minute. */
public class Load {
    interface Shape { double area(); }
    static class Circle implements Shape { double r = 2; public double area() { return Math.PI * r * r; } }
    static class Square implements Shape { double a = 3; public double area() { return side() * side(); } double side() { return a; } }

    static String json(int n) {
        StringBuilder b = new StringBuilder("[");
        for (int i = 0; i < n; i++)
            b.append("{\"id\":").append(i).append(",\"name\":\"n").append(i * 31).append("\"},");
        return b.append("null]").toString();
    }

    static int fields(String text) {
        int count = 0;
        Matcher m = Pattern.compile("\"([a-z]+)\":").matcher(text);
        while (m.find())
            count += m.group(1).length();
        return count;
    }

    static double shapes(List<Shape> shapes) {
        double sum = 0;
        for (Shape s : shapes)
            sum += s.area();
        return sum;
    }

    static long turn(int n) {
        Map<String, Integer> words = new HashMap<>();
        for (int i = 0; i < 2000; i++)
            words.merge("w" + (i * n) % 97, 1, Integer::sum);
        List<String> sorted = words.keySet().stream().map(String::toUpperCase).filter(w -> w.length() > 2)
            .sorted(Comparator.comparing(String::length).thenComparing(Comparator.reverseOrder())).collect(Collectors.toList());
        return sorted.size() + fields(json(50)) + (long) shapes(Arrays.asList(new Circle(), new Square(), new Circle()));
    }

    public static void main(String[] a) throws Exception {
        long until = System.nanoTime() + Long.parseLong(a[0]) * 1000000L, sum = 0;
        for (int n = 1; System.nanoTime() < until; n++)
            sum += turn(n);
        System.out.println("up " + sum);
        Thread.sleep(60000);
    }
}
