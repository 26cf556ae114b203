// SPDX-License-Identifier: Apache-2.0
import java.io.*;

/* Class files as the JVM has them: names on stdin, one a line; size and bytes of each, size 0 where there is none. */
public class Classes {
    public static void main(String[] a) throws Exception {
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String name; (name = in.readLine()) != null; ) {
            InputStream found = Object.class.getResourceAsStream("/" + name + ".class");
            if (found == null)
                found = ClassLoader.getSystemResourceAsStream(name + ".class");
            if (found == null && !System.getProperty("java.version").startsWith("1."))
                found = Modules.find(name + ".class");
            byte[] bytes = found == null ? new byte[0] : all(found);
            out.writeInt(bytes.length);
            out.write(bytes);
        }
        out.flush();
    }

    static byte[] all(InputStream in) throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        for (int b; (b = in.read()) >= 0; )
            out.write(b);
        return out.toByteArray();
    }

    /** Not to be loaded in 8, which has no modules. */
    static class Modules {
        static InputStream find(String name) throws IOException {
            InputStream found = null;
            for (Module m : ModuleLayer.boot().modules())
                if (found == null)
                    found = m.getResourceAsStream(name);
            return found;
        }
    }
}
