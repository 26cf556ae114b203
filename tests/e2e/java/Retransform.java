// SPDX-License-Identifier: Apache-2.0
import java.lang.instrument.*;
import java.security.ProtectionDomain;

/* As Redefine, by an agent that may retransform classes and not redefine them. Retransform PER_SECOND. */
public class Retransform {
    static Instrumentation instrumentation;
    static int by;

    public static void premain(String argument, Instrumentation i) {
        instrumentation = i;
    }

    public static void main(String[] a) throws Exception {
        int perSecond = Integer.parseInt(a[0]);
        byte[] file = Redefine.classFile();
        Class<?> target = Redefine.Target.class; // loaded: a transformer must not need it first
        instrumentation.addTransformer(new ClassFileTransformer() {
            public byte[] transform(ClassLoader loader, String name, Class<?> c, ProtectionDomain domain, byte[] bytes) {
                return c == target ? Redefine.turned(file, by % 7) : null;
            }
        }, true);
        Thread worker = new Thread(() -> {
            for (int n = 0; ; n++)
                Redefine.count += Redefine.call(n / 20);
        });
        worker.setDaemon(true);
        worker.start();
        System.out.println("up " + instrumentation.isRedefineClassesSupported());
        long begin = System.nanoTime();
        for (by = 1; ; by++) {
            instrumentation.retransformClasses(target);
            long wait = begin + by * 1_000_000_000L / perSecond - System.nanoTime();
            if (wait > 0)
                Thread.sleep(wait / 1_000_000, (int) (wait % 1_000_000));
        }
    }
}
