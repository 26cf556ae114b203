// SPDX-License-Identifier: Apache-2.0

/* Threads whose names the kernel has not the whole of. Says "named" when they run. */
public class Names {
    public static void main(String[] a) throws Exception {
        String[] names = { "short", "a name of more than fifteen bytes", "caf\u00e9, in Latin-1, and longer",
                           "\u65e5\u672c\u8a9e \ud83d\ude00 in UTF-16", "" };
        for (String name : names) {
            Thread thread = new Thread(() -> {
                try {
                    Thread.sleep(3_600_000);
                } catch (InterruptedException e) {
                    System.exit(1);
                }
            }, name);
            thread.setDaemon(true);
            thread.start();
        }
        System.out.println("named");
        Thread.sleep(3_600_000);
    }
}
