// SPDX-License-Identifier: Apache-2.0

/* Texts that are searched for others: while the JVM's own code for String.indexOf does that, sp is not the frame's. Calls
 * that went deep before leave return addresses where frames of later ones have room. */
public class Search {
    static final String[] TEXTS = new String[64], WANTED = new String[16];
    static long sum;

    static int deep(int n, int a, int b, int c) {
        return n == 0 ? a ^ b ^ c : deep(n - 1, b + n, c ^ a, a - b) + 1;
    }

    static int find(String text, String wanted) {
        return text.indexOf(wanted);
    }

    /* The compiler has other code for a text that does not change; for this one, too, sp is lowered. */
    static int constant(String text, int n) {
        return deep(n & 7, n, 4, 5) + text.indexOf("bcab!") + text.indexOf("cabzabca, not found");
    }

    static int replace(String text, String wanted) {
        return text.replace(wanted, "-").length();
    }

    static int all(String text, String wanted, int n) {
        int before = deep(6, n, n + 1, n + 2), found = find(text, wanted);
        return before + deep(3, before, found, n) + (n % 8 == 0 ? replace(text, wanted) : 0);
    }

    static int either(String text, String wanted, int n) {
        deep(n & 7, n, 2, 3);
        return text.contains(wanted) ? all(text, wanted, n) : all(wanted, text, n);
    }

    static void turn(int n) {
        String text = TEXTS[n & 63], wanted = WANTED[n >> 3 & 15];
        sum += either(text, wanted, n) + (n % 16 == 0 ? text.split(wanted).length : 0) + constant(text, n);
    }

    public static void main(String[] a) {
        StringBuilder all = new StringBuilder();
        for (int i = 0; i < TEXTS.length; i++) {
            for (int k = 0; k < 30; k++)
                all.append("abcab").append((char) ('a' + (i * 7 + k) % 26));
            TEXTS[i] = all.substring(all.length() - 60 - i);
        }
        for (int i = 0; i < WANTED.length; i++)
            WANTED[i] = TEXTS[i * 3].substring(20 + i, 23 + i + i % 9) + (i % 3 == 0 ? "zz" : "");
        for (int n = 0;; n = (n + 1) & 0xfffff)
            turn(n);
    }
}
