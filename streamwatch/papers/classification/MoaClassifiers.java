// What MOA's classifiers answer to a stream, each instance answered before it is learned. Reads the number of
// attributes and of classes on the first line of standard input, then an instance a line: its class, by index, and its
// attributes, with spaces between; writes for each the classes that the classifiers named as arguments answered. An
// argument is what MOA's command line takes, as "lazy.kNN -k 1 -w 100". After an empty line, for which nothing is
// written, classifiers begin anew.
import com.yahoo.labs.samoa.instances.Attribute;
import com.yahoo.labs.samoa.instances.DenseInstance;
import com.yahoo.labs.samoa.instances.Instance;
import com.yahoo.labs.samoa.instances.Instances;
import com.yahoo.labs.samoa.instances.InstancesHeader;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import moa.classifiers.Classifier;
import moa.core.Utils;
import moa.options.ClassOption;

public final class MoaClassifiers {
  private static InstancesHeader header(int attributes, int classes) {
    List<Attribute> columns = new ArrayList<>();
    for (int k = 1; k <= attributes; k++) columns.add(new Attribute("x" + k));
    List<String> labels = new ArrayList<>();
    for (int k = 0; k < classes; k++) labels.add("c" + k);
    columns.add(new Attribute("class", labels));
    InstancesHeader made = new InstancesHeader(new Instances("stream", columns, 0));
    made.setClassIndex(attributes);
    return made;
  }

  private static Classifier[] classifiers(String[] arguments, InstancesHeader header) throws Exception {
    Classifier[] made = new Classifier[arguments.length];
    for (int k = 0; k < arguments.length; k++) {
      made[k] = (Classifier) ClassOption.cliStringToObject(arguments[k], Classifier.class, null);
      made[k].setModelContext(header);
      made[k].prepareForUse();
    }
    return made;
  }

  public static void main(String[] arguments) throws Exception {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    String[] shape = lines.readLine().trim().split(" ");
    int attributes = Integer.parseInt(shape[0]);
    InstancesHeader header = header(attributes, Integer.parseInt(shape[1]));
    Classifier[] classifiers = classifiers(arguments, header);
    StringBuilder out = new StringBuilder();
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      if (line.isBlank()) {
        classifiers = classifiers(arguments, header);
        continue;
      }
      String[] parts = line.trim().split(" ");
      Instance instance = new DenseInstance(attributes + 1);
      instance.setDataset(header);
      for (int k = 0; k < attributes; k++) instance.setValue(k, Double.parseDouble(parts[k + 1]));
      instance.setClassValue(Integer.parseInt(parts[0]));
      for (int k = 0; k < classifiers.length; k++) {
        if (k > 0) out.append(';');
        out.append(Utils.maxIndex(classifiers[k].getVotesForInstance(instance)));
        classifiers[k].trainOnInstance(instance);
      }
      out.append('\n');
    }
    System.out.print(out);
    System.out.flush();
  }
}
