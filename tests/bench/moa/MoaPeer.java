// MOA's own evaluators and detectors over one synthetic stream, in rounds as asked for on standard input: for each line
// with a number of outcomes one line with the nanoseconds they took. Evaluators live from round to round, as a
// monitor's do. Arguments: classes, outcomes of the stream (read round and round).
import com.yahoo.labs.samoa.instances.Attribute;
import com.yahoo.labs.samoa.instances.DenseInstance;
import com.yahoo.labs.samoa.instances.Instance;
import com.yahoo.labs.samoa.instances.Instances;
import com.yahoo.labs.samoa.instances.InstancesHeader;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import moa.classifiers.core.driftdetection.ADWINChangeDetector;
import moa.classifiers.core.driftdetection.AbstractChangeDetector;
import moa.classifiers.core.driftdetection.DDM;
import moa.classifiers.core.driftdetection.PageHinkleyDM;
import moa.core.Example;
import moa.core.InstanceExample;
import moa.evaluation.AdwinClassificationPerformanceEvaluator;
import moa.evaluation.BasicClassificationPerformanceEvaluator;
import moa.evaluation.FadingFactorClassificationPerformanceEvaluator;
import moa.evaluation.WindowClassificationPerformanceEvaluator;

public final class MoaPeer {
  private final List<Example<Instance>> truths = new ArrayList<>();
  private final double[][] votes;
  private final int[] truth;
  private final int[] predicted;
  private int at = 0;

  private final BasicClassificationPerformanceEvaluator[] evaluators = {
    new BasicClassificationPerformanceEvaluator(),
    new FadingFactorClassificationPerformanceEvaluator(),
    new WindowClassificationPerformanceEvaluator(),
    new AdwinClassificationPerformanceEvaluator(),
  };
  private final AbstractChangeDetector[] detectors = {new PageHinkleyDM(), new ADWINChangeDetector(), new DDM()};

  private MoaPeer(int classes, int outcomes) {
    List<String> names = new ArrayList<>();
    for (int k = 0; k < classes; k++) names.add("c" + k);
    ArrayList<Attribute> attributes = new ArrayList<>();
    attributes.add(new Attribute("x"));
    attributes.add(new Attribute("class", names));
    InstancesHeader header = new InstancesHeader(new Instances("stream", attributes, 0));
    header.setClassIndex(1);
    votes = new double[classes][classes];
    for (int k = 0; k < classes; k++) {
      Instance instance = new DenseInstance(2);
      instance.setDataset(header);
      instance.setValue(0, 0.0);
      instance.setClassValue(k);
      truths.add(new InstanceExample(instance));
      votes[k][k] = 1.0;
    }
    Random random = new Random(7);
    truth = new int[outcomes];
    predicted = new int[outcomes];
    for (int t = 0; t < outcomes; t++) {
      truth[t] = random.nextInt(classes);
      predicted[t] = random.nextDouble() < 0.8 ? truth[t] : random.nextInt(classes);
    }
    for (BasicClassificationPerformanceEvaluator evaluator : evaluators) evaluator.reset(classes);
    for (AbstractChangeDetector detector : detectors) detector.resetLearning();
  }

  private long round(int outcomes) {
    long start = System.nanoTime();
    for (int t = 0; t < outcomes; t++) {
      Example<Instance> example = truths.get(truth[at]);
      double[] vote = votes[predicted[at]];
      for (BasicClassificationPerformanceEvaluator evaluator : evaluators) evaluator.addResult(example, vote);
      double loss = truth[at] == predicted[at] ? 0.0 : 1.0;
      for (AbstractChangeDetector detector : detectors) detector.input(loss);
      if (++at == truth.length) at = 0;
    }
    return System.nanoTime() - start;
  }

  public static void main(String[] args) throws Exception {
    MoaPeer peer = new MoaPeer(Integer.parseInt(args[0]), Integer.parseInt(args[1]));
    BufferedReader rounds = new BufferedReader(new InputStreamReader(System.in));
    for (String line = rounds.readLine(); line != null; line = rounds.readLine()) {
      System.out.println(peer.round(Integer.parseInt(line.trim())));
      System.out.flush();
    }
  }
}
