// MOA's own evaluators and detectors over one synthetic stream: prints nanoseconds per outcome, best of several rounds.
// Arguments: classes outcomes rounds
import com.yahoo.labs.samoa.instances.Attribute;
import com.yahoo.labs.samoa.instances.DenseInstance;
import com.yahoo.labs.samoa.instances.Instance;
import com.yahoo.labs.samoa.instances.Instances;
import com.yahoo.labs.samoa.instances.InstancesHeader;
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
  public static void main(String[] args) {
    int classes = Integer.parseInt(args[0]);
    int outcomes = Integer.parseInt(args[1]);
    int rounds = Integer.parseInt(args[2]);

    List<String> names = new ArrayList<>();
    for (int k = 0; k < classes; k++) names.add("c" + k);
    ArrayList<Attribute> attributes = new ArrayList<>();
    attributes.add(new Attribute("x"));
    attributes.add(new Attribute("class", names));
    InstancesHeader header = new InstancesHeader(new Instances("stream", attributes, 0));
    header.setClassIndex(1);
    List<Example<Instance>> truths = new ArrayList<>();
    double[][] votes = new double[classes][classes];
    for (int k = 0; k < classes; k++) {
      Instance instance = new DenseInstance(2);
      instance.setDataset(header);
      instance.setValue(0, 0.0);
      instance.setClassValue(k);
      truths.add(new InstanceExample(instance));
      votes[k][k] = 1.0;
    }
    Random random = new Random(7);
    int[] truth = new int[outcomes];
    int[] predicted = new int[outcomes];
    for (int t = 0; t < outcomes; t++) {
      truth[t] = random.nextInt(classes);
      predicted[t] = random.nextDouble() < 0.8 ? truth[t] : random.nextInt(classes);
    }

    double best = Double.MAX_VALUE;
    double checksum = 0.0;
    for (int round = 0; round < rounds; round++) {
      BasicClassificationPerformanceEvaluator[] evaluators = {
        new BasicClassificationPerformanceEvaluator(),
        new FadingFactorClassificationPerformanceEvaluator(),
        new WindowClassificationPerformanceEvaluator(),
        new AdwinClassificationPerformanceEvaluator(),
      };
      AbstractChangeDetector[] detectors = {new PageHinkleyDM(), new ADWINChangeDetector(), new DDM()};
      for (BasicClassificationPerformanceEvaluator evaluator : evaluators) evaluator.reset(classes);
      for (AbstractChangeDetector detector : detectors) detector.resetLearning();
      long start = System.nanoTime();
      for (int t = 0; t < outcomes; t++) {
        Example<Instance> example = truths.get(truth[t]);
        double[] vote = votes[predicted[t]];
        for (BasicClassificationPerformanceEvaluator evaluator : evaluators) evaluator.addResult(example, vote);
        double loss = truth[t] == predicted[t] ? 0.0 : 1.0;
        for (AbstractChangeDetector detector : detectors) detector.input(loss);
      }
      best = Math.min(best, (System.nanoTime() - start) / (double) outcomes);
      checksum += evaluators[0].getFractionCorrectlyClassified();
    }
    System.out.printf("%.1f %.6f%n", best, checksum / rounds);
  }
}
