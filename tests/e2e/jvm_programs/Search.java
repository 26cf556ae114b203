// SPDX-License-Identifier: Apache-2.0
import java.util.*;
import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.document.*;
import org.apache.lucene.index.*;
import org.apache.lucene.search.*;
import org.apache.lucene.store.ByteBuffersDirectory;

/* Lucene indexes texts and looks for words in them, by turns and with some threads, until it is ended. Says "ready" first. */
public class Search {
    static final String[] WORDS = ("stack frame sample mapping build unwind row address caller callee register thread process kernel window page "
        + "profile symbol line table heap code compiler loop branch cache memory disk network answer").split(" ");

    static String text(Random dice, int words) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < words; i++)
            text.append(WORDS[dice.nextInt(WORDS.length)]).append(dice.nextInt(50)).append(i % 9 == 8 ? ". " : " ");
        return text.toString();
    }

    static void write(IndexWriter writer, Random dice, int count) throws Exception {
        for (int i = 0; i < count; i++) {
            Document d = new Document();
            d.add(new TextField("text", text(dice, 60), Field.Store.YES));
            d.add(new NumericDocValuesField("size", dice.nextInt(1000)));
            writer.addDocument(d);
        }
        writer.commit();
    }

    static long search(IndexWriter writer, Random dice, int count) throws Exception {
        long found = 0;
        try (DirectoryReader reader = DirectoryReader.open(writer)) {
            IndexSearcher searcher = new IndexSearcher(reader);
            for (int i = 0; i < count; i++) {
                String word = WORDS[dice.nextInt(WORDS.length)];
                Query query = new BooleanQuery.Builder()
                    .add(new PrefixQuery(new Term("text", word + dice.nextInt(5))), BooleanClause.Occur.SHOULD)
                    .add(new FuzzyQuery(new Term("text", word + dice.nextInt(50))), BooleanClause.Occur.SHOULD).build();
                for (ScoreDoc hit : searcher.search(query, 20, new Sort(new SortField("size", SortField.Type.INT))).scoreDocs)
                    found += searcher.doc(hit.doc).get("text").length();
            }
        }
        return found;
    }

    static void turns(int seed) {
        try (ByteBuffersDirectory folder = new ByteBuffersDirectory(); IndexWriter writer = new IndexWriter(folder, new IndexWriterConfig(new StandardAnalyzer()))) {
            Random dice = new Random(seed);
            for (long sum = 0; sum >= 0;) {
                write(writer, dice, 200);
                sum += search(writer, dice, 40);
                if (writer.getDocStats().numDocs > 4000)
                    writer.deleteAll();
            }
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    public static void main(String[] a) {
        System.out.println("ready");
        for (int i = 0; i < 2; i++) {
            int seed = i;
            new Thread(() -> turns(seed), "search-" + i).start();
        }
    }
}
